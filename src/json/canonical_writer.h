/* canonical_writer.h - writes canonical JSON (RFC 8785): one value has one spelling, so its hash
 * means something.
 *
 *     struct jcs json = { 0 };
 *     jcs_open(&json, '{');
 *     jcs_key(&json, "status"); jcs_text(&json, "ok", 2);
 *     jcs_close(&json, '}');
 *     if (jcs_end(&json, err) < 0) …
 *
 * Members may come in any order; an object that closes puts them into theirs. Numbers are integers
 * that a double holds exactly; what is larger must be written as text. What is not UTF-8 becomes
 * U+FFFD. A mistake is remembered and told by jcs_end().
 *
 *   See  RFC 8785 */
#pragma once

#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

enum { JCS_DEPTH_MAX = 16, JCS_MEMBERS_MAX = 256 };

struct jcs {
    struct bytes out;
    const char *mistake;
    unsigned depth, member_count;
    struct jcs_level {
        char bracket;
        unsigned first_member;
    } levels[JCS_DEPTH_MAX];
    struct jcs_member {
        const char *key;
        size_t start;           /* of its first byte in `out` */
    } members[JCS_MEMBERS_MAX]; /* of all objects that are open */
    bool key_is_written;
};

void jcs_open(struct jcs *json, char bracket);
void jcs_close(struct jcs *json, char bracket);
void jcs_key(struct jcs *json, const char *key); /* borrowed until the object is closed */
void jcs_text(struct jcs *json, const char *text, size_t size);
void jcs_integer(struct jcs *json, int64_t value);
void jcs_flag(struct jcs *json, bool value);
void jcs_null(struct jcs *json);
void jcs_raw(struct jcs *json, const char *canonical,
             size_t size); /* a value in its canonical form */

/* Key and value at once. A text that is NULL is null. */
void jcs_open_field(struct jcs *json, const char *key, char bracket);
void jcs_text_field(struct jcs *json, const char *key, const char *text);
void jcs_count_field(struct jcs *json, const char *key, uint64_t value);
void jcs_integer_field(struct jcs *json, const char *key, int64_t value);
void jcs_flag_field(struct jcs *json, const char *key, bool value);
void jcs_null_field(struct jcs *json, const char *key);

/* The whole value stands in json->out. Fails  ERR_INTERNAL  for what has no canonical form, or when
 * memory is gone. */
int jcs_end(struct jcs *json, error *err);
void jcs_done(struct jcs *json);

/* Compares keys by UTF-16 code units, as the RFC orders them: <0, 0, >0. */
int jcs_compare(const char *left, const char *right);
