/* json_text.c - runs of plain bytes are copied whole; the few others are looked at one by one. */
#include "base/json_text.h"

#include "base/utf8.h"

#include <stdio.h>

static bool is_plain(unsigned char byte, enum json_delete is_delete)
{
    return byte >= 0x20 && byte < (is_delete == JSON_DELETE_ESCAPED ? 0x7F : 0x80) && byte != '"' &&
           byte != '\\';
}

static void escape(struct bytes *out, unsigned char byte)
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
    bytes_add(out, "\"", 1);
    const unsigned char *at = (const unsigned char *) text;
    const unsigned char *end = at + size;
    while (at < end) {
        const unsigned char *plain = at;
        while (plain < end && is_plain(*plain, is_delete))
            plain++;
        bytes_add(out, at, (size_t) (plain - at));
        at = plain;
        if (at == end)
            break;
        if (*at < 0x80) {
            escape(out, *at++);
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
