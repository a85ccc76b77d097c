/* quote.c - runs of plain bytes are copied whole; the few others are looked at one by one. */
#include "json/quote.h"

#include "base/utf8.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static bool is_plain(unsigned char byte, enum json_delete is_delete)
{
    return byte >= 0x20 && byte < (is_delete == JSON_DELETE_ESCAPED ? 0x7F : 0x80) && byte != '"' &&
           byte != '\\';
}

/* Is any of the eight bytes less than `least`, which is at most 0x80? A byte from 0x80 on counts as
 * none; and never does one that is not less make it true without one below that is. */
static bool has_less(uint64_t eight, uint64_t min)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = UINT64_C(0x8080808080808080);
    return (eight - ones * min) & ~eight & tops;
}

/* How many bytes are plain from the first on. Most texts are names and hashes: eight bytes at a
 * look. */
static size_t plain_size(const unsigned char *text, size_t size, enum json_delete is_delete)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    size_t plain = 0;
    for (; size - plain >= 8; plain += 8) {
        uint64_t eight;
        memcpy(&eight, text + plain, sizeof eight);
        if ((eight & (ones << 7)) || has_less(eight, 0x20) || has_less(eight ^ ones * '"', 1) ||
            has_less(eight ^ ones * '\\', 1) || has_less(eight ^ ones * 0x7F, 1))
            break;
    }
    while (plain < size && is_plain(text[plain], is_delete))
        plain++;
    return plain;
}

void json_escape(struct bytes *out, unsigned char byte)
{
    static const char short_forms[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (const char *form = short_forms; *form; form += 2)
        if ((unsigned char) form[0] == byte) {
            char escaped[2] = { '\\', form[1] };
            bytes_add(out, escaped, sizeof escaped);
            return;
        }
    char escaped[8];
    (void) snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned) byte);
    bytes_add(out, escaped, 6);
}

void json_text_quote(struct bytes *out, const char *text, size_t size, enum json_delete is_delete)
{
    const unsigned char *at = (const unsigned char *) text;
    const unsigned char *end = at + size;
    size_t plain = plain_size(at, size, is_delete);
    char *place = bytes_reserve(out, size + 2);
    if (!place)
        return;
    *place++ = '"';
    if (plain > 0)
        memcpy(place, at, plain);
    out->size += 1 + plain;
    at += plain;
    if (at == end) {
        place[plain] = '"';
        out->size++;
        return;
    }
    while (at < end) {
        plain = plain_size(at, (size_t) (end - at), is_delete);
        bytes_add(out, at, plain);
        at += plain;
        if (at == end)
            break;
        if (*at < 0x80) {
            json_escape(out, *at++);
            continue;
        }
        int length = utf8_character(at, (size_t) (end - at));
        if (length > 0) {
            bytes_add(out, at, (size_t) length);
            at += length;
        } else {
            bytes_add(out, "\xEF\xBF\xBD", 3); /* U+FFFD */
            at++;
        }
    }
    bytes_add(out, "\"", 1);
}
