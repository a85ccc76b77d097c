/* long_text.c - copies plain bytes in blocks and decodes the escapes that are complete in
 * themselves. */
#include "json/long_text.h"

#include "base/hex.h"
#include "base/utf8.h"
#include "json/eight_bytes.h"

#include <stdint.h>
#include <string.h>

enum { PIECE = 4096, UNICODE_SIZE = 6 }; /* "\u1234" */

size_t long_text_plain_size(const char *data, size_t size)
{
    size_t plain = 0;
    for (; size - plain >= 8; plain += 8) {
        uint64_t eight = eight_bytes(data + plain);
        if (eight_have_less(eight, 0x20) || eight_have(eight, '"') || eight_have(eight, '\\'))
            break;
    }
    while (plain < size && (unsigned char) data[plain] >= 0x20 && data[plain] != '"' &&
           data[plain] != '\\')
        plain++;
    return plain;
}

/* Decodes "\u1234" unless it is a surrogate. Returns the size in bytes; 0: left to json-c. */
static size_t read_unicode(const char *data, size_t size, char ret_text[4])
{
    uint32_t point = 0;
    if (size < UNICODE_SIZE)
        return 0;
    for (size_t i = 2; i < UNICODE_SIZE; i++) {
        int digit = hex_digit(data[i]);
        if (digit < 0)
            return 0;
        point = point << 4 | (unsigned) digit;
    }
    return point >= 0xD800 && point <= 0xDFFF ? 0 : utf8_encode(point, ret_text);
}

/* Returns how many bytes the escape at `data` takes; 0: left to json-c. */
static size_t read_escape(const char *data, size_t size, char ret_text[4], size_t *ret_size)
{
    static const char forms[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
    if (size < 2 || data[0] != '\\')
        return 0;
    if (data[1] == 'u') {
        *ret_size = read_unicode(data, size, ret_text);
        return *ret_size > 0 ? UNICODE_SIZE : 0;
    }
    for (const char *form = forms; *form; form += 2)
        if (*form == data[1]) {
            ret_text[0] = form[1];
            *ret_size = 1;
            return 2;
        }
    return 0;
}

/* Decodes plain bytes and common escapes up to the first that is left to json-c. Returns how many
 * bytes it took. */
static size_t read_piece(const char *data, size_t size, char *ret_text, size_t *ret_size)
{
    size_t at = 0, used = 0, added, taken;
    for (;;) {
        size_t plain = long_text_plain_size(data + at, size - at);
        memcpy(ret_text + used, data + at, plain);
        at += plain;
        used += plain;
        if (!(taken = read_escape(data + at, size - at, ret_text + used, &added)))
            break;
        at += taken;
        used += added;
    }
    *ret_size = used;
    return at;
}

ptrdiff_t long_text_take(struct json_tokener *tokener, const char *data, size_t size)
{
    size_t taken = 0;
    enum json_tokener_state state = tokener->stack[tokener->depth].state;
    if (state != json_tokener_state_string && state != json_tokener_state_object_field)
        return 0;
    while (taken < size) {
        char text[PIECE + 4]; /* a decoded escape is never longer than its source */
        size_t text_size, piece = size - taken < PIECE ? size - taken : PIECE;
        size_t read = read_piece(data + taken, piece, text, &text_size);
        if (text_size > 0 && printbuf_memappend(tokener->pb, text, (int) text_size) < 0)
            return -1;
        taken += read;
        if (read < piece && !(piece == PIECE && piece - read < UNICODE_SIZE && read > 0))
            break; /* stopped before a byte for json-c, not at an escape that the piece cuts */
    }
    return (ptrdiff_t) taken;
}
