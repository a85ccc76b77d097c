/* router_test.c - which row matches a path, and the values of its parameters. */
#include "doors/http/router.h"

#include "base/table.h"
#include "base/test.h"
#include "doors/http/http.h"

#include <stdio.h>
#include <string.h>

static const struct route thing_rows[] = {
    { .method = "GET", .path = "/v1/things", .text = "list" },
    { .method = "POST", .path = "/v1/things/{id}:decide", .text = "decide" },
    { .method = "GET", .path = "/v1/things/{id}", .text = "one" },
    { .method = "DELETE", .path = "/v1/things/{id}", .text = "delete" },
    { .method = "POST", .path = "/v1/things/{id}", .text = "again" },
    { .method = "POST", .path = "/v1/things/{id}/parts/{part}/run", .text = "run" },
    { .method = "PUT", .path = "/v1/things/{id}/files/{path}", .text = "file" },
};
static const struct route port_rows[] = {
    { .method = "ANY", .path = "/v1/things/{id}/ports/{port}/{path}", .text = "port" },
};
static const struct route_table things = { "things", thing_rows, COUNT_OF(thing_rows) };
static const struct route_table ports = { "ports", port_rows, COUNT_OF(port_rows) };
static const struct route_table *const tables[] = { &things, &ports, NULL };

#define LONG_NAME                                                      \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdefg"

TEST(a_path_means_one_row)
{
    static const struct {
        const char *method, *path, *row, *first, *second, *third;
    } facts[] = {
        { "GET", "/v1/things", "list", NULL, NULL, NULL },
        { "HEAD", "/v1/things", "list", NULL, NULL, NULL },
        { "GET", "/v1/things/", NULL, NULL, NULL, NULL },
        { "GET", "/v1/things/a", "one", "a", NULL, NULL },
        { "GET", "/v1/things/sha256:ab", "one", "sha256:ab", NULL, NULL },
        { "DELETE", "/v1/things/a", "delete", "a", NULL, NULL },
        { "POST", "/v1/things/a:decide", "decide", "a", NULL, NULL },
        { "GET", "/v1/things/a:decide", NULL, NULL, NULL, NULL },
        { "POST", "/v1/things/a", "again", "a", NULL, NULL },
        { "POST", "/v1/things/a/parts/b/run", "run", "a", "b", NULL },
        { "POST", "/v1/things/a/parts//run", NULL, NULL, NULL, NULL },
        { "PUT", "/v1/things/a/files/x/y z/ü", "file", "a", "x/y z/ü", NULL },
        { "PUT", "/v1/things/a/files/", "file", "a", "", NULL },
        { "PUT", "/v1/things/a/files", NULL, NULL, NULL, NULL },
        { "TRACE", "/v1/things/a/ports/80/", "port", "a", "80", "" },
        { "GET", "/v1/things/a/ports/80/b/c", "port", "a", "80", "b/c" },
        { "GET", "/v1/things/" LONG_NAME, NULL, NULL, NULL, NULL },
        { "GET", "", NULL, NULL, NULL, NULL },
    };
    for_each(fact, facts) {
        char path[512];
        struct route_match match = { 0 };
        (void) snprintf(path, sizeof path, "%s", fact->path);
        int result = route_find(tables, fact->method, path, &match);
        const char *row = match.route ? match.route->text : NULL;
        expect((result == ROUTE_FOUND) == (fact->row != NULL) &&
                   (!row || strcmp(row, fact->row) == 0),
               "%s %s means %s", fact->method, fact->path, row ? row : "nothing");
        const char *const wanted[] = { fact->first, fact->second, fact->third };
        for (size_t i = 0; i < COUNT_OF(wanted); i++)
            expect((wanted[i] == NULL) == (match.parameters[i] == NULL) &&
                       (!wanted[i] || strcmp(wanted[i], match.parameters[i]) == 0),
                   "parameter %zu of %s is '%s'", i, fact->path,
                   match.parameters[i] ? match.parameters[i] : "-");
    }
}

TEST(other_methods_are_distinguished_from_other_places)
{
    static const struct {
        const char *path, *allow;
    } facts[] = {
        { "/v1/things", "GET, HEAD, OPTIONS" },
        { "/v1/things/a", "DELETE, GET, HEAD, POST, OPTIONS" },
        { "/v1/things/a:decide", "POST, OPTIONS" },
        { "/v1/things/a/ports/80/x", "DELETE, GET, HEAD, PATCH, POST, PUT, OPTIONS" },
        { "/v2", "" },
    };
    for_each(fact, facts) {
        char allow[ALLOW_SIZE];
        char path[512];
        struct route_match match = { 0 };
        route_methods(tables, fact->path, allow);
        expect(strcmp(allow, fact->allow) == 0, "%s allows %s", fact->path, allow);
        (void) snprintf(path, sizeof path, "%s", fact->path);
        int result = route_find(tables, "BREW", path, &match);
        bool is_any = strstr(fact->path, "ports") != NULL;
        int wanted = is_any ? ROUTE_FOUND : *fact->allow ? ROUTE_OTHER_METHOD : ROUTE_UNKNOWN;
        expect(result == wanted, "BREW %s gave %d", fact->path, result);
    }
}

TESTS(CASE(a_path_means_one_row), CASE(other_methods_are_distinguished_from_other_places))
