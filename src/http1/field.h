/* field.h - parts of the heads of requests and answers: tokens, fields, lengths, the status (RFC
 * 9110, section 5; RFC 9112, section 4). Pure; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_text {
    const char *at; /* points into the head; not ended by NUL */
    size_t size;
};

struct http_field {
    struct http_text name, value;
};

bool http_is_token(struct http_text text);

/* True if the text is this word; case does not count. */
bool http_text_is(struct http_text text, const char *word);

/* The text without blanks and tabs at both ends. */
struct http_text http_text_trim(struct http_text text);

/* Splits a line, given without its end, into a token, a colon and a value without control
 * characters. Returns -1 if the line has another form. */
int http_field_read(const char *line, size_t size, struct http_field *ret_field);

/* True if the field has this name; case does not count, and "_" equals "-", as some servers treat
 * it. */
bool http_field_is(const struct http_field *field, const char *name);

/* True if the field belongs to one connection, and must not be forwarded (RFC 9110, 7.6.1). */
bool http_field_is_hop_by_hop(const struct http_field *field);

/* The value of Content-Length. Returns -1 if it is not a number, or has more than 18 digits. */
int http_length_read(struct http_text value, uint64_t *ret_length);

/* The status of a status line of HTTP/1.0 or 1.1, 100 to 599. Returns -1 for any other line. */
int http_status_read(const char *line, size_t size);
