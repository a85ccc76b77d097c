/* writer.h - writes JSON straight into bytes: no tree, no copy; it sets the commas.
 *
 *     json_open(out, '{');
 *     json_text_field(out, "id", id);
 *     json_key(out, "usage"); json_open(out, '{'); … json_close(out, '}');
 *     json_close(out, '}');
 *
 * Text may come from sandboxes: bytes that are not UTF-8 become U+FFFD, controls are escaped. */
#pragma once

#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

void json_open(struct bytes *out, char bracket);
void json_close(struct bytes *out, char bracket);
static inline struct bytes json_begin(char bracket)
{
    struct bytes out = { 0 };
    json_open(&out, bracket);
    return out;
}

void json_close_all(struct bytes *out, const char *brackets);
void json_key(struct bytes *out, const char *key);

void json_comma(struct bytes *out); /* if a value was written before; for writers of values */

void json_text(struct bytes *out, const char *text, size_t size);
void json_canonical_text(struct bytes *out, const char *text, size_t size); /* see JSON_DELETE_… */
void json_string(struct bytes *out, const char *text);                      /* NULL is null */
void json_count(struct bytes *out, uint64_t value);
void json_number(struct bytes *out, int64_t value);
void json_flag(struct bytes *out, bool value);
void json_null(struct bytes *out);
void json_base64(struct bytes *out, const void *data, size_t size);
void json_raw(struct bytes *out, const void *json, size_t size); /* a value that is JSON already */

void json_open_field(struct bytes *out, const char *key, char bracket);
void json_string_field(struct bytes *out, const char *key, const char *text);
void json_count_field(struct bytes *out, const char *key, uint64_t value);
void json_number_field(struct bytes *out, const char *key, int64_t value);
void json_flag_field(struct bytes *out, const char *key, bool value);
void json_null_field(struct bytes *out, const char *key);

/* Milliseconds since 1970 as RFC 3339 in UTC; 0 is null. */
void json_moment_field(struct bytes *out, const char *key, int64_t ms);

/* An array of the texts in `texts`, each of which ends with NUL. */
void json_texts(struct bytes *out, const struct bytes *texts);
