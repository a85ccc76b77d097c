/* openapi.h - how the rows of the route tables describe themselves: parameters and schemas.
 *
 * Types are written in a few words; openapi.c makes JSON Schema of them:
 *
 *     string  string 1..255  count  count 0..300  integer  number  boolean  any  object
 *     =ok,error,limit        one of these words
 *     RunResult              that schema: a word with a capital
 *     []string  []Artifact   a list of them
 *     {}string               an object with any keys
 *     number?                or null */
#pragma once

#include "daemon/bytes.h"

#include <stdbool.h>

struct route_table;

enum place { IN_QUERY, IN_HEADER };

struct parameter {
    const char *name; /* NULL ends a list */
    enum place place;
    const char *type;
    const char *text;
    bool is_required; /* in the query */
};

/* One field of an object. */
struct property {
    const char *name; /* NULL ends a list */
    const char *type;
    const char *text;
    bool may_lack; /* in a request: it may be left out. In an answer every field is there */
};

/* A named schema; the areas that have some list them in schemas.c. */
struct schema {
    const char *name;
    const char *text;
    const struct property *fields; /* NULL: it is one of these others: */
    const char *either[3];
    bool is_open; /* other keys than these may be there */
};

extern const struct schema *const schema_tables[]; /* NULL at the end */

void openapi_write(const struct route_table *const *tables, struct bytes *out);
