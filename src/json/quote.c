/* quote.c - plain bytes are copied in blocks; the others are handled one by one. */
#include "json/quote.h"

#include "base/utf8.h"
#include "json/eight_bytes.h"

#include <stdint.h>
#include <string.h>

enum { ESCAPED_MAX = 6, MIXED_MAX = 1024, RUN_MIN = 16 };

static bool is_plain(unsigned char byte, enum json_delete is_delete)
{
    return byte >= 0x20 && byte < (is_delete == JSON_DELETE_ESCAPED ? 0x7F : 0x80) && byte != '"' &&
           byte != '\\';
}

/* How many bytes from the first on are plain, tested eight at a time. */
static size_t plain_size(const unsigned char *text, size_t size, enum json_delete is_delete)
{
    size_t plain = 0;
    for (; size - plain >= 8; plain += 8) {
        uint64_t eight = eight_bytes(text + plain);
        if ((eight & UINT64_C(0x8080808080808080)) || eight_have_less(eight, 0x20) ||
            eight_have(eight, '"') || eight_have(eight, '\\') || eight_have(eight, 0x7F))
            break;
    }
    while (plain < size && is_plain(text[plain], is_delete))
        plain++;
    return plain;
}

/* Writes at most ESCAPED_MAX bytes. Returns how many. */
static size_t write_escape(char *place, unsigned char byte)
{
    static const char digits[] = "0123456789abcdef";
    static const char short_forms[128] = { ['"'] = '"',  ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f',
                                           ['\n'] = 'n', ['\r'] = 'r',  ['\t'] = 't' };
    place[0] = '\\';
    if (byte < sizeof short_forms && short_forms[byte]) {
        place[1] = short_forms[byte];
        return 2;
    }
    place[1] = 'u';
    place[2] = place[3] = '0';
    place[4] = digits[byte >> 4];
    place[5] = digits[byte & 15];
    return ESCAPED_MAX;
}

void json_escape(struct bytes *out, unsigned char byte)
{
    char escaped[ESCAPED_MAX];
    bytes_add(out, escaped, write_escape(escaped, byte));
}

/* Writes one character, at most ESCAPED_MAX bytes. Returns how many; *taken is its size in the
 * text. */
static size_t write_character(char *place, const unsigned char *at, size_t size, size_t *taken)
{
    static const unsigned char replacement[] = { 0xEF, 0xBF, 0xBD }; /* U+FFFD */
    int length = utf8_character(at, size);
    *taken = length > 0 ? (size_t) length : 1;
    if (*at < 0x80)
        return write_escape(place, *at);
    if (length > 0)
        memcpy(place, at, (size_t) length);
    else
        memcpy(place, replacement, sizeof replacement);
    return length > 0 ? (size_t) length : sizeof replacement;
}

/* Handles bytes one by one until a run of plain bytes begins that is long enough to copy. Returns
 * how many bytes it took. */
static size_t add_mixed(struct bytes *out, const unsigned char *at, size_t size,
                        enum json_delete is_delete)
{
    size_t room = size < MIXED_MAX ? size : MIXED_MAX;
    char *const begin = bytes_reserve(out, room * ESCAPED_MAX);
    char *place = begin;
    size_t done = 0;
    for (size_t run = 0; begin && done < room && run < RUN_MIN;) {
        size_t taken = 1;
        if (is_plain(at[done], is_delete)) {
            *place++ = (char) at[done];
            run++;
        } else {
            place += write_character(place, at + done, size - done, &taken);
            run = 0;
        }
        done += taken;
    }
    if (!begin)
        return size;
    out->size += (size_t) (place - begin);
    return done;
}

static void add_text(struct bytes *out, const unsigned char *at, size_t size,
                     enum json_delete is_delete)
{
    while (size > 0) {
        size_t plain = plain_size(at, size, is_delete);
        bytes_add(out, at, plain);
        at += plain;
        size -= plain;
        size_t mixed = add_mixed(out, at, size, is_delete);
        at += mixed;
        size -= mixed;
    }
}

void json_text_quote(struct bytes *out, const char *text, size_t size, enum json_delete is_delete)
{
    const unsigned char *at = (const unsigned char *) text;
    size_t plain = plain_size(at, size, is_delete);
    char *place = bytes_reserve(out, size + 2);
    if (!place)
        return;
    *place++ = '"';
    if (plain > 0)
        memcpy(place, at, plain);
    out->size += 1 + plain;
    if (plain == size) {
        place[plain] = '"';
        out->size++;
        return;
    }
    add_text(out, at + plain, size - plain, is_delete);
    bytes_add(out, "\"", 1);
}

void json_quote_begin(struct json_quote *quote, struct bytes *out)
{
    *quote = (struct json_quote){ .out = out };
    bytes_add(out, "\"", 1);
}

/* Writes the character that was cut between two pieces, as far as it is complete. */
static void settle_cut(struct json_quote *quote)
{
    int length = UTF8_CUT;
    while (quote->cut_size > 0 &&
           (length = utf8_character(quote->cut, quote->cut_size)) != UTF8_CUT) {
        size_t done = length > 0 ? (size_t) length : 1;
        add_text(quote->out, quote->cut, done, JSON_DELETE_ESCAPED);
        quote->cut_size -= done;
        memmove(quote->cut, quote->cut + done, quote->cut_size);
    }
}

void json_quote_add(struct json_quote *quote, const char *text, size_t size)
{
    for (; quote->cut_size > 0 && size > 0; size--) {
        quote->cut[quote->cut_size++] = (unsigned char) *text++;
        settle_cut(quote);
    }
    if (size == 0)
        return;
    size_t cut = utf8_cut_at_end(text, size);
    add_text(quote->out, (const unsigned char *) text, size - cut, JSON_DELETE_ESCAPED);
    memcpy(quote->cut, text + size - cut, cut);
    quote->cut_size = cut;
}

void json_quote_end(struct json_quote *quote)
{
    add_text(quote->out, quote->cut, quote->cut_size, JSON_DELETE_ESCAPED);
    bytes_add(quote->out, "\"", 1);
}
