/* quote.h - text as a JSON string (RFC 8259 section 7).
 *
 * The output is valid JSON for any input: bytes that are not UTF-8 become U+FFFD, control
 * characters are escaped in the shortest form, and all else is copied. */
#pragma once

#include "base/bytes.h"

/* DEL (0x7F) is not escaped in canonical JSON (RFC 8785 section 3.2.2.2); elsewhere it is, in case
 * a terminal shows it. */
enum json_delete { JSON_DELETE_AS_IT_IS, JSON_DELETE_ESCAPED };

/* Adds `size` bytes of `text`, quotes included. */
void json_text_quote(struct bytes *out, const char *text, size_t size, enum json_delete is_delete);

/* The same with DEL escaped, in pieces: a character may be cut between two of them. */
struct json_quote {
    struct bytes *out;
    unsigned char cut[4]; /* the first bytes of a character whose rest has not come */
    size_t cut_size;
};

void json_quote_begin(struct json_quote *quote, struct bytes *out);
void json_quote_add(struct json_quote *quote, const char *text, size_t size);
void json_quote_end(struct json_quote *quote);

/* Adds one byte in the shortest form of an escape. */
void json_escape(struct bytes *out, unsigned char byte);
