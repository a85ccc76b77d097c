/* canonical_writer.h - writes canonical JSON (RFC 8785): equal values have equal text, and so
 * equal hashes.
 *
 *     struct jcs json = { 0 };
 *     jcs_open(&json, '{');
 *     jcs_key(&json, "status"); jcs_text(&json, "ok", 2);
 *     jcs_close(&json, '}');
 *     if (jcs_end(&json, err) < 0) …
 *
 * Members may be written in any order; they are sorted when the object is closed. Numbers are
 * integers that a double holds exactly; larger ones must be written as text. Bytes that are not
 * UTF-8 become U+FFFD. jcs_end() reports the first mistake.
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
             size_t size); /* a value that is canonical JSON */

/* Key and value in one call. NULL is written as null. */
void jcs_open_field(struct jcs *json, const char *key, char bracket);
void jcs_text_field(struct jcs *json, const char *key, const char *text);
void jcs_count_field(struct jcs *json, const char *key, uint64_t value);
void jcs_integer_field(struct jcs *json, const char *key, int64_t value);
void jcs_flag_field(struct jcs *json, const char *key, bool value);
void jcs_null_field(struct jcs *json, const char *key);

/* Checks that the value in json->out is complete. Fails  ERR_INTERNAL  it has no canonical form, or
 * memory ran out. */
int jcs_end(struct jcs *json, error *err);
void jcs_done(struct jcs *json);

/* Compares keys by UTF-16 code units, as the RFC orders them: <0, 0, >0. */
int jcs_compare(const char *left, const char *right);
