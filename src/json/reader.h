/* reader.h - reads one JSON value from bytes as they arrive, with bounds on all amounts.
 *
 * A body is parsed piece by piece while it arrives, so that a large one is not twice in memory and
 * does not hold up the loop. The first mistake is kept with its position; later bytes are
 * ignored. */
#pragma once

#include "base/error.h"
#include "json/member.h"

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
    unsigned nul_size;    /* bytes of "u0000" that have come after a backslash */
    bool text_has_nul;    /* the last text */
    uint64_t name_hashes; /* the sum of the hashes of all names, as written */
    bool is_exact;        /* may be set after opening: duplicate names are refused */
    bool is_done;
    unsigned char cut[4]; /* the first bytes of a character whose rest has not come */
    size_t cut_size;
    error failure; /* code ERR_NONE while all is well */
};

int json_reader_open(struct json_reader *reader, error *err);
void json_reader_take(struct json_reader *reader, const char *data, size_t size);

/* Gives  *ret_value, released with json_object_put(). Fails  ERR_BAD_REQUEST  with the mistake and
 * its position. */
int json_reader_end(struct json_reader *reader, struct json_object **ret_value, error *err);
void json_reader_close(struct json_reader *reader);

/* Reads a text that is complete. Gives and fails as json_reader_end(). */
int json_read(const char *text, size_t size, struct json_object **ret_value, error *err);
int json_read_exact(const char *text, size_t size, struct json_object **ret_value, error *err);
