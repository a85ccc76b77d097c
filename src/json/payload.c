/* payload.c - see payload.h. */
#include "json/payload.h"

#include "base/base64.h"

#include <string.h>

void payload_from_text(struct payload *content, const char *text, size_t size)
{
    *content = (struct payload){ .text = text, .text_size = size, .size = size };
}

int payload_from_base64(struct payload *content, const char *text, size_t size, error *err)
{
    if (size % 4 != 0)
        return fail(err, ERR_BAD_REQUEST, "base64 of %zu characters is cut; pad it with '='", size);
    size_t bad;
    int64_t decoded = base64_check(text, size, &bad);
    if (decoded < 0)
        return fail(err, ERR_BAD_REQUEST,
                    "character %zu is not base64; use A-Z a-z 0-9 + / =", bad);
    *content = (struct payload){
        .text = text, .text_size = size, .is_base64 = true, .size = (uint64_t) decoded
    };
    return 0;
}

size_t payload_read(const struct payload *content, uint64_t offset, unsigned char *bytes,
                    size_t size)
{
    if (offset >= content->size)
        return 0;
    if (size > content->size - offset)
        size = (size_t) (content->size - offset);
    if (content->is_base64)
        base64_read(content->text + offset / 3 * 4, bytes, size);
    else
        memcpy(bytes, content->text + offset, size);
    return size;
}
