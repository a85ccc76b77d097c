/* router.c - compares a path part by part with each row: a few dozen rows, a microsecond. */
#include "doors/http/router.h"

#include "base/table.h"
#include "doors/http/http.h"

#include <stdio.h>
#include <string.h>

struct span {
    const char *from;
    size_t size;
};

/* "{path}" at the very end of a pattern. */
static bool takes_the_rest(const char *pattern)
{
    return strcmp(pattern, "{path}") == 0;
}

/* Fills spans and does not split the path, since the row may not match. */
static bool path_matches(const char *pattern, const char *path, struct span *spans, size_t *count)
{
    *count = 0;
    while (*pattern) {
        if (*pattern != '{') {
            if (*pattern++ != *path++)
                return false;
            continue;
        }
        if (*count == ROUTE_PARAMETERS_MAX)
            return false;
        size_t length = strlen(path);
        bool is_rest = takes_the_rest(pattern);
        pattern += strcspn(pattern, "}") + 1;
        if (!is_rest) {
            char stops[] = { '/', *pattern, '\0' };
            length = strcspn(path, stops);
            if (length == 0 || length > PARAMETER_MAX)
                return false;
        }
        spans[(*count)++] = (struct span){ path, length };
        path += length;
    }
    return *path == '\0';
}

static bool method_fits(const struct route *route, const char *method)
{
    return strcmp(route->method, method) == 0 || strcmp(route->method, "ANY") == 0 ||
           (strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0);
}

static void keep(struct route_match *match, char *path, const struct span *spans, size_t count)
{
    match->parameter_count = count;
    for (size_t i = 0; i < count; i++) {
        size_t at = (size_t) (spans[i].from - path);
        match->parameters[i] = path + at;
        path[at + spans[i].size] = '\0';
    }
}

int route_find(const struct route_table *const *tables, const char *method, char *path,
               struct route_match *ret_match)
{
    const char *meant = NULL; /* the path of the first row that fits */
    for (; *tables; tables++)
        for (size_t i = 0; i < (*tables)->count; i++) {
            const struct route *route = &(*tables)->rows[i];
            struct span spans[ROUTE_PARAMETERS_MAX];
            size_t count;
            if (!path_matches(route->path, path, spans, &count) ||
                (meant && strcmp(meant, route->path) != 0))
                continue;
            meant = route->path;
            if (!method_fits(route, method))
                continue;
            ret_match->route = route;
            ret_match->table = *tables;
            keep(ret_match, path, spans, count);
            return ROUTE_FOUND;
        }
    return meant ? ROUTE_OTHER_METHOD : ROUTE_UNKNOWN;
}

void route_methods(const struct route_table *const *tables, const char *path,
                   char ret_allow[ALLOW_SIZE])
{
    static const char *const methods[] = { "DELETE", "GET", "HEAD", "PATCH", "POST", "PUT" };
    size_t used = 0;
    char copy[PATH_BYTES_MAX + 1];
    ret_allow[0] = '\0';
    for_each(method, methods) {
        struct route_match match;
        (void) snprintf(copy, sizeof copy, "%s", path);
        if (route_find(tables, *method, copy, &match) == ROUTE_FOUND)
            used += (size_t) snprintf(ret_allow + used, ALLOW_SIZE - used, "%s, ", *method);
    }
    if (used > 0)
        (void) snprintf(ret_allow + used, ALLOW_SIZE - used, "OPTIONS");
}

const char *route_all_methods(void)
{
    return "DELETE, GET, HEAD, PATCH, POST, PUT, OPTIONS";
}
