/* text.c - UTF-8 by its table of leading bytes (Unicode 15, table 3-7). */
#include "base/text.h"

#include "base/table.h"

#include <stdint.h>
#include <string.h>

/* The leading bytes, how many bytes follow, and what the second byte may be. */
static const struct {
    uint8_t first, last;
    uint8_t more;
    uint8_t min, max;
} leads[] = {
    { 0x09, 0x0a, 0, 0, 0 },       { 0x20, 0x7e, 0, 0, 0 },
    { 0xc2, 0xc2, 1, 0xa0, 0xbf }, /* without the second set of control characters */
    { 0xc3, 0xdf, 1, 0x80, 0xbf }, { 0xe0, 0xe0, 2, 0xa0, 0xbf },
    { 0xe1, 0xec, 2, 0x80, 0xbf }, { 0xed, 0xed, 2, 0x80, 0x9f }, /* without surrogates */
    { 0xee, 0xef, 2, 0x80, 0xbf }, { 0xf0, 0xf0, 3, 0x90, 0xbf },
    { 0xf1, 0xf3, 3, 0x80, 0xbf }, { 0xf4, 0xf4, 3, 0x80, 0x8f },
};

/* Bytes of the character at `text`; 0 if it is none. */
static size_t character_size(const uint8_t *text, size_t length)
{
    for_each(lead, leads) {
        if (text[0] < lead->first || text[0] > lead->last)
            continue;
        if (lead->more >= length)
            return 0;
        if (lead->more > 0 && (text[1] < lead->min || text[1] > lead->max))
            return 0;
        for (size_t i = 2; i <= lead->more; i++)
            if ((text[i] & 0xc0) != 0x80)
                return 0;
        return (size_t) lead->more + 1;
    }
    return 0;
}

size_t text_find_unclean(const char *text, size_t length)
{
    size_t at = 0;
    while (at < length) {
        size_t size = character_size((const uint8_t *) text + at, length - at);
        if (size == 0)
            return at;
        at += size;
    }
    return length;
}

int text_head(const char *text, int max)
{
    size_t length = strnlen(text, (size_t) max + 1);
    if (length <= (size_t) max)
        return (int) length;
    /* A character has at most three bytes behind its first. */
    int head = max;
    while (head > 0 && max - head < 3 && (text[head] & 0xc0) == 0x80)
        head--;
    return head;
}
