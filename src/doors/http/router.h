/* router.h - finds the route for a method and a path. */
#pragma once

#include <stddef.h>

struct route;
struct route_table;

enum { ROUTE_PARAMETERS_MAX = 4, PATH_BYTES_MAX = 4096, PARAMETER_MAX = 128, ALLOW_SIZE = 96 };

/* The values of the parts in braces, in order. They point into the path, which is split in
 * place. */
struct route_match {
    const struct route *route;
    const struct route_table *table;
    const char *parameters[ROUTE_PARAMETERS_MAX];
    size_t parameter_count;
};

enum { ROUTE_FOUND = 0, ROUTE_UNKNOWN = 1, ROUTE_OTHER_METHOD = 2 };

/* Searches `tables`, which end with NULL. The first row whose path matches says what the path
 * means: rows of another path do not serve it. A parameter is one part of the path, at most
 * PARAMETER_MAX bytes; a last one named {path} takes the whole rest with its slashes, also if it is
 * empty. HEAD is served by the row for GET, and a row for "ANY" serves every method. */
int route_find(const struct route_table *const *tables, const char *method, char *path,
               struct route_match *ret_match);

/* Gives  the methods of this path: "DELETE, GET, HEAD, OPTIONS"; "" if there are none. */
void route_methods(const struct route_table *const *tables, const char *path,
                   char ret_allow[ALLOW_SIZE]);

/* All methods that rows may serve: the answer to "OPTIONS *". */
const char *route_all_methods(void);
