/* range.c - one range, in its three forms: from-to, from-, and -last. */
#include "doors/http/range.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool read_number(const char **text, uint64_t *ret_value)
{
    char *end;
    if (**text < '0' || **text > '9')
        return false;
    errno = 0;
    *ret_value = strtoull(*text, &end, 10);
    *text = end;
    return errno == 0;
}

static int last_bytes(uint64_t count, uint64_t size, struct byte_range *ret_range)
{
    if (count == 0 || size == 0)
        return RANGE_BEYOND;
    if (count > size)
        count = size;
    *ret_range = (struct byte_range){ size - count, count };
    return RANGE_PART;
}

int range_read(const char *text, uint64_t size, struct byte_range *ret_range)
{
    static const char unit[] = "bytes=";
    if (strncmp(text, unit, sizeof unit - 1) != 0)
        return RANGE_WHOLE;
    text += sizeof unit - 1;
    uint64_t first = 0, last = UINT64_MAX;
    bool has_first = read_number(&text, &first);
    if (*text != '-')
        return RANGE_WHOLE;
    text++;
    bool has_last = read_number(&text, &last);
    if (*text != '\0' || (!has_first && !has_last) || (has_last && has_first && last < first))
        return RANGE_WHOLE;
    if (!has_first)
        return last_bytes(last, size, ret_range);
    if (first >= size)
        return RANGE_BEYOND;
    if (!has_last || last >= size)
        last = size - 1;
    *ret_range = (struct byte_range){ first, last - first + 1 };
    return RANGE_PART;
}
