/* query_check.c - checks a query with the table of its route, which the OpenAPI document is printed
 * from. */
#include "base/bytes.h"
#include "doors/http/http.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* "=0, 1" */
static int check_word(const struct parameter *parameter, const char *value, error *err)
{
    size_t length = strlen(value);
    for (const char *word = parameter->type + 1; *word;) {
        size_t size = strcspn(word, ",");
        if (size == length && memcmp(word, value, size) == 0)
            return 0;
        word += size + strspn(word + size, ", ");
    }
    return fail(err, ERR_BAD_REQUEST, "%s '%.40s' does not exist; it is one of %s", parameter->name,
                value, parameter->type + 1);
}

/* "count", "count 1..1000" */
static int check_count(const struct parameter *parameter, const char *value, error *err)
{
    const char *blank = strchr(parameter->type, ' ');
    const char *dots = blank ? strstr(blank, "..") : NULL;
    uint64_t min = dots ? strtoull(blank, NULL, 10) : 0;
    uint64_t max = dots ? strtoull(dots + 2, NULL, 10) : UINT64_MAX;
    char *end;
    errno = 0;
    uint64_t count = strtoull(value, &end, 10);
    if (*value >= '0' && *value <= '9' && !*end && errno == 0 && count >= min && count <= max)
        return 0;
    return fail(err, ERR_BAD_REQUEST, "%s=%.40s is not a number from %" PRIu64 " to %" PRIu64,
                parameter->name, value, min, max);
}

struct names {
    const struct parameter *query; /* of the route */
    const char *unknown;           /* the first that it does not have */
};

static void find_unknown(void *context, const char *name, const char *value)
{
    struct names *names = context;
    const struct parameter *each = names->query;
    (void) value;
    while (each && each->name && (each->place != IN_QUERY || strcmp(each->name, name) != 0))
        each++;
    if (!names->unknown && (!each || !each->name))
        names->unknown = name;
}

/* Routes of version 1 read all of their query; ports pass it on, probes and MCP pass it over. */
static int check_names(const struct exchange *exchange, error *err)
{
    const struct route *route = exchange->route;
    struct names names = { route->query, NULL };
    auto_bytes taken = { 0 };
    if (strncmp(route->path, "/v1/", 4) != 0 || strcmp(route->method, "ANY") == 0)
        return 0;
    exchange_each_query(exchange, find_unknown, &names);
    if (!names.unknown)
        return 0;
    for (const struct parameter *each = route->query; each && each->name; each++)
        if (each->place == IN_QUERY)
            bytes_print(&taken, ", %s", each->name);
    const char *list = bytes_text(&taken);
    return fail(err, ERR_BAD_REQUEST, "%s %s takes no '%.40s' in its query; it takes %s",
                route->method, route->path, names.unknown, list && *list ? list + 2 : "none");
}

int exchange_check_query(const struct exchange *exchange, error *err)
{
    for (const struct parameter *each = exchange->route->query; each && each->name; each++) {
        const char *value = each->place == IN_QUERY ? exchange_query(exchange, each->name) : NULL;
        if (!value && each->is_required)
            return fail(err, ERR_BAD_REQUEST, "the query lacks '%s'", each->name);
        bool is_count = strncmp(each->type, "count", 5) == 0;
        if (value && ((*each->type == '=' && check_word(each, value, err) < 0) ||
                      (is_count && check_count(each, value, err) < 0)))
            return -1;
    }
    return check_names(exchange, err);
}
