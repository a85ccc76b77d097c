/* stream_copy.h - copies the wanted members of a JSON object that a program sends, as it arrives,
 * without a tree.
 *
 * Each byte is looked at once, at the same cost wherever it is, so the time for a message depends
 * on its length and not on its values. The output is written anew: no blanks, one way to escape,
 * single surrogates as U+FFFD, and of duplicate members only the first. */
#pragma once

#include "base/bytes.h"
#include "json/name_set.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The depth leaves room for the documents around it: many readers take 32 levels. */
enum { JSON_COPY_DEPTH_MAX = 27, JSON_COPY_VALUES_MAX = 100000, JSON_COPY_TOKEN_MAX = 320 };

/* Is a member of the object (depth 1), or of one of its members (depth 2), wanted? Deeper members
 * are copied with theirs. The name is as written, without quotes; `at` is where its value will
 * begin. */
typedef bool json_copy_wants(void *user, unsigned depth, const char *name, size_t size, size_t at);

struct json_copy {
    json_copy_wants *wants;
    void *user;
    struct bytes text; /* the values of wanted members, one behind the other */

    int state; /* of the machine in stream_copy.c */
    unsigned depth;
    unsigned left_out_at; /* the depth of the member that is being left out; 0: none */
    uint64_t values;
    bool is_object[JSON_COPY_DEPTH_MAX + 1];
    uint32_t object[JSON_COPY_DEPTH_MAX + 1]; /* a number for each that is open */
    uint32_t objects;

    bool is_name; /* the current text is a name */
    size_t name_at;
    unsigned utf8_left; /* bytes that the current character still needs, and what the next may be */
    unsigned char utf8_low, utf8_high;
    uint32_t unit, high; /* of an escape: its four digits, and the surrogate before it */
    unsigned digits;
    char token[JSON_COPY_TOKEN_MAX]; /* a number, true, false or null */
    size_t token_size;

    struct name_set names; /* seen so far */
};

void json_copy_init(struct json_copy *copy, json_copy_wants *wants, void *user);
void json_copy_done(struct json_copy *copy);

/* Takes the next bytes. After a mistake (not an object, too deep, too many values) the rest is
 * ignored. */
void json_copy_take(struct json_copy *copy, const char *data, size_t size);

/* True if the bytes were exactly one object, and all wanted members are in `text`. */
bool json_copy_is_whole(const struct json_copy *copy);
