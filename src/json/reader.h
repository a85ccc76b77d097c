/* reader.h - reads one JSON value from bytes as they come in, with every amount bounded.
 *
 * A body is parsed piece by piece while it arrives: a large one neither lies in memory twice nor
 * holds up the loop. The first mistake is remembered with its place; what follows is ignored. */
#pragma once

#include "base/error.h"

#include <json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_reader {
    struct json_tokener *tokener;
    struct json_object *value;
    uint64_t bytes;  /* taken so far */
    uint64_t values; /* commas, colons and brackets seen outside of texts */
    uint64_t names;  /* of members: colons outside of texts */
    bool in_text, after_backslash;
    unsigned nul_size;    /* of "u0000" behind a backslash, what has come */
    bool text_has_nul;    /* the last text */
    uint64_t name_hashes; /* of all names as they are written, summed */
    bool is_exact;        /* set after opening: a member that stands twice is refused */
    bool is_done;
    unsigned char cut[4]; /* beginning of a character whose rest has not come */
    size_t cut_size;
    error failure; /* code ERR_NONE while all is well */
};

int json_reader_open(struct json_reader *reader, error *err);
void json_reader_take(struct json_reader *reader, const char *data, size_t size);

/* Gives  *ret_value, released with json_object_put().
 * Fails  ERR_BAD_REQUEST  with what is wrong and where. */
int json_reader_end(struct json_reader *reader, struct json_object **ret_value, error *err);
void json_reader_close(struct json_reader *reader);

/* All of it for a text that is there already. Gives and fails as json_reader_end(). */
int json_read(const char *text, size_t size, struct json_object **ret_value, error *err);
int json_read_exact(const char *text, size_t size, struct json_object **ret_value, error *err);
