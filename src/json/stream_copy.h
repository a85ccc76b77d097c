/* stream_copy.h - takes over a JSON object that a program sends, as it comes in, without a tree.
 *
 * Each byte is looked at once and costs the same, wherever it stands: a message holds up the loop
 * for as long as it is long, frame by frame, and not for what its values would be in memory. What
 * comes out is written anew: no blanks, texts escaped in one way, half surrogates as U+FFFD, of a
 * member that stands twice in one object the first. */
#pragma once

#include "base/bytes.h"
#include "json/name_set.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_COPY_DEPTH_MAX = 64, JSON_COPY_VALUES_MAX = 100000, JSON_COPY_TOKEN_MAX = 320 };

/* Is a member of the object (depth 1), or of one of its members (depth 2), wanted? Deeper ones go
 * with it. The name is as it is written, without quotes; `at` is where its value will begin. */
typedef bool json_copy_wants(void *user, unsigned depth, const char *name, size_t size, size_t at);

struct json_copy {
    json_copy_wants *wants;
    void *user;
    struct bytes text; /* the values of wanted members, one behind the other */

    int state; /* of the machine in stream_copy.c */
    unsigned depth;
    unsigned left_out_at; /* a member of this depth is left out; 0: none */
    uint64_t values;
    bool is_object[JSON_COPY_DEPTH_MAX + 1];
    uint32_t object[JSON_COPY_DEPTH_MAX + 1]; /* a number for each object, to tell names apart */
    uint32_t objects;

    bool is_name; /* the text that is coming in */
    size_t name_at;
    unsigned utf8_left; /* bytes of a character that have not come, and what the next may be */
    unsigned char utf8_low, utf8_high;
    uint32_t unit, high; /* of an escape: its four digits, and the surrogate before it */
    unsigned digits;
    char token[JSON_COPY_TOKEN_MAX]; /* a number, true, false or null */
    size_t token_size;

    struct name_set names; /* that were seen */
};

void json_copy_init(struct json_copy *copy, json_copy_wants *wants, void *user);
void json_copy_done(struct json_copy *copy);

/* What cannot be taken over (no JSON object, too deep, too many values) is remembered; what follows
 * of it is not looked at. */
void json_copy_take(struct json_copy *copy, const char *data, size_t size);

/* Was all of it one object, and is all that was wanted there? */
bool json_copy_is_whole(const struct json_copy *copy);
