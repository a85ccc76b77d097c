/* payload.c - base64 (RFC 4648) without a copy of the whole. */
#include "json/payload.h"

#include <string.h>

/* The value of a digit; 64 for what is none. */
static unsigned value_of(char digit)
{
    if (digit >= 'A' && digit <= 'Z')
        return (unsigned) (digit - 'A');
    if (digit >= 'a' && digit <= 'z')
        return (unsigned) (digit - 'a') + 26;
    if (digit >= '0' && digit <= '9')
        return (unsigned) (digit - '0') + 52;
    return digit == '+' ? 62 : digit == '/' ? 63 : 64;
}

void payload_from_text(struct payload *content, const char *text, size_t size)
{
    *content = (struct payload){ .text = text, .text_size = size, .size = size };
}

int payload_from_base64(struct payload *content, const char *text, size_t size, error *err)
{
    if (size % 4 != 0)
        return fail(err, ERR_BAD_REQUEST, "base64 of %zu characters is cut; pad it with '='", size);
    size_t padding = 0;
    while (padding < 2 && padding < size && text[size - 1 - padding] == '=')
        padding++;
    for (size_t i = 0; i < size - padding; i++)
        if (value_of(text[i]) > 63)
            return fail(err, ERR_BAD_REQUEST,
                        "character %zu is not base64; use A-Z a-z 0-9 + / =", i);
    *content = (struct payload){
        .text = text, .text_size = size, .is_base64 = true, .size = size / 4 * 3 - padding
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
    if (!content->is_base64) {
        memcpy(bytes, content->text + offset, size);
        return size;
    }
    const char *four = content->text + offset / 3 * 4;
    for (size_t i = 0; i < size; i += 3, four += 4) {
        uint32_t three = (value_of(four[0]) & 63) << 18 | (value_of(four[1]) & 63) << 12 |
                         (value_of(four[2]) & 63) << 6 | (value_of(four[3]) & 63);
        bytes[i] = (unsigned char) (three >> 16);
        if (i + 1 < size)
            bytes[i + 1] = (unsigned char) (three >> 8);
        if (i + 2 < size)
            bytes[i + 2] = (unsigned char) three;
    }
    return size;
}
