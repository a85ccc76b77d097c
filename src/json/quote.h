/* quote.h - text as a JSON string (RFC 8259 section 7).
 *
 * Whatever comes in, valid JSON comes out: bytes that are no UTF-8 become U+FFFD, control
 * characters are escaped in the shortest form, all else stands for itself. */
#pragma once

#include "base/bytes.h"

/* DEL (0x7F) may stand in JSON as it is, which canonical JSON insists on (RFC 8785
 * section 3.2.2.2); where a terminal may be the reader it is better escaped. */
enum json_delete { JSON_DELETE_AS_IT_IS, JSON_DELETE_ESCAPED };

/* Adds `size` bytes of `text`, quotes included. */
void json_text_quote(struct bytes *out, const char *text, size_t size, enum json_delete is_delete);

/* The same with what a terminal may be shown, in pieces: a character may lie across them. */
struct json_quote {
    struct bytes *out;
    unsigned char cut[4]; /* the beginning of a character whose rest has not come */
    size_t cut_size;
};

void json_quote_begin(struct json_quote *quote, struct bytes *out);
void json_quote_add(struct json_quote *quote, const char *text, size_t size);
void json_quote_end(struct json_quote *quote);

/* Adds one byte in the shortest form of an escape. */
void json_escape(struct bytes *out, unsigned char byte);
