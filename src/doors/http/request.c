/* request.c - reads a request: first the header, which decides almost everything, then the body;
 * then calls the handler. */
#include "base/clock.h"
#include "base/table.h"
#include "doors/http/http_internal.h"
#include "doors/http/request_guard.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    HEADER_MAX = 16 * 1024,
    THROWN_AWAY_MAX = 64 << 20, /* bytes of a refused body; then it is answered at once */
    REQUEST_ID_MAX = REQUEST_ID_SIZE - 1,
    HOST_SIZE = 256,
};

/* For the bodies of all requests together. */
static const uint64_t bodies_max = UINT64_C(1) << 30;

/* --- checks of the header --------------------------------------------------------------------- */

static int check_header_size(const struct exchange *exchange, error *err)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    if (info && info->header_size > HEADER_MAX)
        return fail(err, ERR_HEADER_TOO_LARGE, "the header has %zu bytes, %d are allowed",
                    info->header_size, HEADER_MAX);
    return 0;
}

struct header_check {
    struct guard_headers seen;
    error *err;
    int result;
};

static void check_header(void *context, const char *name, const char *value)
{
    struct header_check *check = context;
    if (check->result == 0)
        check->result = guard_header(&check->seen, name, value, check->err);
}

static int check_headers(const struct exchange *exchange, error *err)
{
    const struct connection *connection = connection_of(exchange->connection);
    struct header_check check = { .err = err };
    if (connection && connection->is_odd)
        return fail(err, ERR_BAD_REQUEST,
                    "the target has blanks or control characters; write them as %%20");
    exchange_each_header(exchange, check_header, &check);
    if (check.result == 0 && exchange->needs_host &&
        !exchange_header(exchange, MHD_HTTP_HEADER_HOST))
        return fail(err, ERR_BAD_REQUEST, "HTTP/1.1 needs a Host; send one, such as localhost");
    return check.result;
}

/* Splits the target of a proxy's client, "http://localhost:7070/healthz": its host counts, whatever
 * Host says (RFC 9112, 3.2.2). Gives  *ret_host, stored in `room` or in the request. */
static const char *read_target(const struct exchange *exchange, const char *target,
                               char room[HOST_SIZE], const char **ret_host)
{
    static const char scheme[] = "http://";
    *ret_host = exchange_header(exchange, MHD_HTTP_HEADER_HOST);
    if (strncasecmp(target, scheme, sizeof scheme - 1) != 0)
        return target;
    const char *host = target + sizeof scheme - 1;
    size_t length = strcspn(host, "/");
    (void) snprintf(room, HOST_SIZE, "%.*s", length < HOST_SIZE ? (int) length : 0, host);
    *ret_host = room;
    if (host[length])
        return host + length;
    return strcmp(exchange->method, "OPTIONS") == 0 ? "*" : "/"; /* RFC 9112, 3.2.4 */
}

/* "OPTIONS *" asks for the abilities of the whole server (RFC 9110, 9.3.7). */
static bool is_about_all(const struct exchange *exchange, const char *path)
{
    return strcmp(path, "*") == 0 && strcmp(exchange->method, "OPTIONS") == 0;
}

static int find_route(struct exchange *exchange, const char *path, error *err)
{
    const struct http_settings *settings = &exchange->http->settings;
    if (strlen(path) > PATH_BYTES_MAX)
        return fail(err, ERR_NOT_FOUND, "the path has %zu bytes, %d are allowed", strlen(path),
                    PATH_BYTES_MAX);
    exchange->path = strdup(path);
    if (!exchange->path)
        return fail(err, ERR_SYSTEM, "no memory for a path");
    if (is_about_all(exchange, path)) {
        exchange_add_header(exchange, MHD_HTTP_HEADER_ALLOW, route_all_methods());
        return 0;
    }
    struct route_match match = { 0 };
    int found = ROUTE_UNKNOWN;
    for (size_t i = 0; found == ROUTE_UNKNOWN && settings->doors[i]; i++) {
        exchange->door = settings->doors[i];
        found = route_find(exchange->door->tables, exchange->method, exchange->path, &match);
    }
    if (found == ROUTE_UNKNOWN)
        return fail(err, ERR_NOT_FOUND,
                    "nothing is served at %.100s; GET /openapi.json lists what is", path);
    char allow[ALLOW_SIZE];
    if (found == ROUTE_OTHER_METHOD) {
        route_methods(exchange->door->tables, path, allow);
        exchange_add_header(exchange, MHD_HTTP_HEADER_ALLOW, allow);
        if (strcmp(exchange->method, "OPTIONS") == 0)
            return 0;
        return fail(err, ERR_METHOD, "%.11s is not served for %.100s; %s are", exchange->method,
                    path, allow);
    }
    exchange->route = match.route;
    exchange->right = match.route->right ? match.route->right : match.table->right;
    memcpy(exchange->parameters, match.parameters, sizeof exchange->parameters);
    read_trace_context(exchange);
    return 0;
}

/* "application/json; charset=utf-8" is application/json. */
static bool has_type(const char *value, const char *type)
{
    size_t length = strlen(type);
    return strncasecmp(value, type, length) == 0 &&
           (value[length] == '\0' || value[length] == ';' || value[length] == ' ' ||
            value[length] == ',');
}

static int check_content(const struct exchange *exchange, error *err)
{
    static const char *const taken[] = { "application/json", "text/json", "text/plain",
                                         "application/x-www-form-urlencoded" /* curl -d */ };
    const char *type = exchange_header(exchange, MHD_HTTP_HEADER_CONTENT_TYPE);
    const char *coding = exchange_header(exchange, MHD_HTTP_HEADER_CONTENT_ENCODING);
    if (coding && strcasecmp(coding, "identity") != 0)
        return fail(err, ERR_MEDIA_TYPE,
                    "Content-Encoding '%.40s' is not supported; send the body unencoded", coding);
    if (exchange->route->body != BODY_JSON || !type)
        return 0;
    for_each(each, taken)
        if (has_type(type, *each))
            return 0;
    return fail(err, ERR_MEDIA_TYPE, "Content-Type '%.60s' is not supported; send application/json",
                type);
}

/* True if a type of the Accept header matches the route's. */
static bool accepts(const char *accept, const char *mime)
{
    size_t family = strcspn(mime, "/") + 1;
    for (const char *each = accept; *each; each += strcspn(each, ","), each += *each == ',') {
        each += strspn(each, " \t");
        if (has_type(each, "*/*") || has_type(each, mime) ||
            (strncasecmp(each, mime, family) == 0 && each[family] == '*'))
            return true;
    }
    return false;
}

static int check_accept(const struct exchange *exchange, error *err)
{
    const char *accept = exchange_header(exchange, MHD_HTTP_HEADER_ACCEPT);
    const struct route *route = exchange->route;
    const char *mime = route->mime ? route->mime : "application/json";
    if (!accept || !*accept || strcmp(mime, "*/*") == 0 || accepts(accept, mime) ||
        (route->streams && accepts(accept, "text/event-stream")))
        return 0;
    return fail(err, ERR_NOT_ACCEPTABLE,
                "Accept '%.60s' does not include %s, the type of this answer", accept, mime);
}

static uint64_t body_max(const struct exchange *exchange)
{
    const struct route *route = exchange->route;
    if (route && route->body == BODY_STREAM)
        return route->body_max > 0 ? route->body_max : UINT64_MAX;
    return exchange->http->settings.body_max;
}

/* A browser shows an answer to a page of another origin only if the answer names that origin;
 * before a request with a key it sends OPTIONS (Fetch standard, 3.2). There are no cookies, so the
 * headers that allow credentials are not needed. */
static void allow_origin(struct exchange *exchange, const char *origin)
{
    const struct guard_names *names = exchange->http->settings.names;
    if (!origin || !names || !guard_lists(names->origins, origin, strlen(origin)))
        return;
    exchange_add_header(exchange, "Access-Control-Allow-Origin", origin);
    exchange_add_header(exchange, "Vary", "Origin");
    exchange_add_header(exchange, "Access-Control-Expose-Headers", "*");
    if (!exchange_header(exchange, "Access-Control-Request-Method"))
        return;
    exchange_add_header(exchange, "Access-Control-Allow-Methods", route_all_methods());
    exchange_add_header(exchange, "Access-Control-Allow-Headers",
                        "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, "
                        "Last-Event-ID, Prefer, Range, X-API-Key, X-Request-Id");
    exchange_add_header(exchange, "Access-Control-Max-Age", "600");
}

static int check_length(const struct exchange *exchange, error *err)
{
    const char *length = exchange_header(exchange, MHD_HTTP_HEADER_CONTENT_LENGTH);
    uint64_t max = body_max(exchange);
    if (length && strtoull(length, NULL, 10) > max)
        return fail(err, ERR_TOO_LARGE, "the body has %.20s bytes, %" PRIu64 " are allowed", length,
                    max);
    return 0;
}

/* All checks of the header, in the order of the answers: is the request well-formed, does its route
 * exist, is the caller allowed, is its body acceptable? */
static int admit(struct exchange *exchange, const char *target, error *err)
{
    char room[HOST_SIZE];
    const char *host;
    const char *path = read_target(exchange, target, room, &host);
    const char *origin = exchange_header(exchange, MHD_HTTP_HEADER_ORIGIN);
    if (check_header_size(exchange, err) < 0 || check_headers(exchange, err) < 0 ||
        guard_origin(host, origin, exchange->is_remote, exchange->http->settings.names, err) < 0)
        return -1;
    allow_origin(exchange, origin);
    if (find_route(exchange, path, err) < 0)
        return -1;
    const struct route *route = exchange->route;
    if (!route)
        return 0; /* OPTIONS */
    const struct http_settings *settings = &exchange->http->settings;
    if (settings->admit && settings->admit(exchange, err) < 0)
        return -1;
    if (check_length(exchange, err) < 0 || check_content(exchange, err) < 0 ||
        check_accept(exchange, err) < 0 || exchange_check_query(exchange, err) < 0)
        return -1;
    if (route->body == BODY_JSON && json_reader_open(&exchange->body, err) < 0)
        return -1;
    exchange->body.is_exact = true;
    return 0;
}

/* --- from header to handler ------------------------------------------------------------------- */

/* A client's id for its request is kept if it can be logged safely. */
static void name_request(struct exchange *exchange)
{
    static const char plain[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.";
    const char *given = exchange_header(exchange, "X-Request-Id");
    size_t length = given ? strlen(given) : 0;
    if (length > 0 && length <= REQUEST_ID_MAX && strspn(given, plain) == length) {
        memcpy(exchange->id, given, length + 1);
        return;
    }
    unsigned char random[8];
    randombytes_buf(random, sizeof random);
    memcpy(exchange->id, "req_", 4);
    (void) sodium_bin2hex(exchange->id + 4, sizeof exchange->id - 4, random, sizeof random);
}

/* The header was accepted. The request waits for its turn, and its body is not read before;
 * afterwards libmicrohttpd calls here again. */
static enum MHD_Result begin_when_due(struct exchange *exchange)
{
    const struct route *route = exchange->route;
    if (exchange->is_gone)
        return MHD_NO;
    if (exchange->refusal.code == ERR_NONE && route) {
        if (!request_has_turn(exchange))
            return MHD_YES;
        if (exchange->door->is_early && exchange->door->is_early(exchange)) {
            exchange_wait(exchange);
            return MHD_YES;
        }
        if (route->begin)
            (void) route->begin(exchange, &exchange->refusal);
    }
    exchange->has_begun = true;
    if (exchange->refusal.code != ERR_NONE)
        exchange_fail(exchange, &exchange->refusal); /* without reading the body */
    return MHD_YES;
}

static struct exchange *exchange_new(struct http *http, struct MHD_Connection *mhd,
                                     const char *method, const char *version)
{
    struct exchange *exchange = calloc(1, sizeof *exchange);
    if (!exchange)
        return NULL;
    exchange->http = http;
    http->exchange_count++;
    exchange->service = http->settings.service;
    exchange->connection = mhd;
    exchange->began_ms = now_ms();
    exchange->body_is_open = true;
    exchange->is_remote = true;
    exchange->needs_host = strcmp(version, "HTTP/1.0") != 0;
    (void) snprintf(exchange->method, sizeof exchange->method, "%s", method);
    name_request(exchange);
    exchange->caller.request_id = exchange->id;

    struct connection *connection = connection_of(mhd);
    if (connection) {
        connection->since_ms = 0;
        connection->exchange = exchange;
        exchange->is_remote = connection->is_remote;
        exchange->is_owner = connection->is_owner;
    }
    return exchange;
}

static void refuse_if_too_much(struct exchange *exchange)
{
    uint64_t max = body_max(exchange);
    if (exchange->refusal.code != ERR_NONE)
        return;
    if (exchange->body_bytes > max)
        (void) fail(&exchange->refusal, ERR_TOO_LARGE,
                    "the body has more than the %" PRIu64 " bytes allowed", max);
    else if (exchange->http->bodies > bodies_max)
        (void) fail(&exchange->refusal, ERR_BUSY, "too many large requests at once; try again");
}

static enum MHD_Result throw_away(struct exchange *exchange, size_t *size)
{
    json_reader_close(&exchange->body);
    bool is_enough = exchange->body_bytes > THROWN_AWAY_MAX &&
                     exchange->body_bytes > 2 * exchange->http->settings.body_max;
    *size = 0;
    if (exchange->lingers_until.at_ms != 0)
        return deadline_has_passed(exchange->lingers_until) ? MHD_NO : MHD_YES;
    return !is_enough || exchange_fail_early(exchange, &exchange->refusal) ? MHD_YES : MHD_NO;
}

static enum MHD_Result stream_body(struct exchange *exchange, const char *data, size_t *size)
{
    /* libmicrohttpd gives the rest again only with new bytes, or after a wait. */
    while (*size > 0 && exchange->refusal.code == ERR_NONE) {
        ssize_t taken = exchange->route->take(exchange, data, *size, &exchange->refusal);
        if (taken < 0)
            return throw_away(exchange, size);
        if (taken == 0) {
            exchange_wait(exchange);
            return MHD_YES;
        }
        exchange->body_bytes += (uint64_t) taken;
        data += taken;
        *size -= (size_t) taken;
        refuse_if_too_much(exchange);
    }
    return exchange->refusal.code == ERR_NONE ? MHD_YES : throw_away(exchange, size);
}

static enum MHD_Result take_body(struct exchange *exchange, const char *data, size_t *size)
{
    if (exchange->is_gone)
        return MHD_NO;
    bool is_streamed = exchange->route && exchange->route->body == BODY_STREAM;
    if (is_streamed && exchange->refusal.code == ERR_NONE)
        return stream_body(exchange, data, size);
    exchange->body_bytes += *size;
    if (!is_streamed)
        exchange->http->bodies += *size;
    refuse_if_too_much(exchange);
    if (exchange->refusal.code != ERR_NONE)
        return throw_away(exchange, size);
    if (exchange->route && exchange->route->body == BODY_JSON)
        json_reader_take(&exchange->body, data, *size);
    *size = 0;
    return MHD_YES;
}

/* NOLINTNEXTLINE(readability-function-size): libmicrohttpd's own signature */
enum MHD_Result take_request(void *context, struct MHD_Connection *mhd, const char *path,
                             const char *method, const char *version, const char *data,
                             size_t *size, void **request)
{
    struct exchange *exchange = *request;
    if (!exchange) {
        *request = exchange = exchange_new(context, mhd, method, version);
        if (!exchange)
            return MHD_NO;
        (void) admit(exchange, path, &exchange->refusal);
        return begin_when_due(exchange);
    }
    if (exchange->is_answered) {
        *size = 0;
        return MHD_YES;
    }
    if (!exchange->has_begun)
        return begin_when_due(exchange);
    if (*size > 0)
        return take_body(exchange, data, size);
    exchange->body_is_open = false;
    if (exchange->is_gone || exchange->lingers_until.at_ms != 0)
        return MHD_NO;
    request_serve(exchange);
    return exchange->is_answered || exchange->is_waiting ? MHD_YES : MHD_NO;
}

static void exchange_free(struct exchange *exchange)
{
    struct http *http = exchange->http;
    http->exchange_count--;
    http->has_answered = true;
    exchange_stop_watching(exchange);
    exchange_stop_resting(exchange);
    request_leave_queue(exchange);
    if (http->settings.ended)
        http->settings.ended(exchange);
    if (exchange->closed)
        exchange->closed(exchange);
    json_reader_close(&exchange->body);
    if (!exchange->route || exchange->route->body != BODY_STREAM)
        http->bodies -= exchange->body_bytes;
    bytes_done(&exchange->headers);
    free(exchange->path);
    free(exchange->claim);
    free(exchange);
}

void request_completed(void *context, struct MHD_Connection *mhd, void **request,
                       enum MHD_RequestTerminationCode why)
{
    (void) context;
    (void) why;
    struct connection *connection = connection_of(mhd);
    if (connection) {
        connection->exchange = NULL;
        connection->since_ms = now_ms();
    }
    if (*request)
        exchange_free(*request);
    *request = NULL;
}
