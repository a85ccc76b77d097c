/* http.h - HTTP/1.1 for all doors: connections, bodies, answers, streams; libmicrohttpd under
 * libuv.
 *
 * All that a peer can use up is bounded: connections, header bytes, body bytes, and the time for
 * each of them (slow_peers.c).
 *
 * How to add routes: a file for each area, with its handlers and at its end a table of them,
 *
 *     static const struct route rows[] = {
 *         { "GET", "/v1/things/{id}", BODY_NONE, get_thing, "What it does, in one sentence",
 *           .operation = "getThing" },
 *         { "PUT", "/v1/things/{id}/files/{path}", BODY_STREAM, put_done, "…", .take = put_more,
 *           .operation = "writeThing" },
 *     };
 *     const struct route_table thing_routes = { "things", rows, COUNT_OF(rows), RIGHT_RUN };
 *
 * and one line in routes.c. The OpenAPI document is printed from the same rows (openapi.h): .query,
 * .takes and .gives.
 *
 * A handler is called when the whole request has come. It answers (exchange_answer, exchange_file,
 * exchange_fail), waits (exchange_wait: it is called again after exchange_wake), streams
 * (exchange_stream), or leaves HTTP (exchange_upgrade). Its data between calls is exchange->user,
 * which exchange->closed frees; that is always called at the end of the exchange. */
#pragma once

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "doors/http/router.h"
#include "engine/service/service_callers.h"
#include "engine/service/service_session_wait.h"
#include "json/reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct MHD_Connection;
struct MHD_UpgradeResponseHandle;
struct exchange;
struct http;
struct upgrade;

enum { REQUEST_ID_SIZE = 65, LISTENERS_MAX = 8 };

enum body {
    BODY_NONE,  /* a body is ignored */
    BODY_JSON,  /* parsed into exchange->body; at most http_settings.body_max */
    BODY_STREAM /* given to `take` piece by piece, never kept */
};

/* What a route reads from its query and its header. Types are written as in
 * engine/service/schema/schema.h. */
enum place { IN_QUERY, IN_HEADER };
struct parameter {
    const char *name; /* NULL ends a list */
    enum place place;
    const char *type;
    const char *text;
    bool is_required; /* in the query */
};

/* The parameters of one route, in its row. */
/* clang-format off */
#define QUERY(...) (const struct parameter[]){ __VA_ARGS__, { 0 } }
/* clang-format on */

/* One row of a route table. Members below `text` are optional. */
struct route {
    const char *method; /* GET serves HEAD too; "ANY" is every method */
    const char *path;   /* "/v1/runs/{id}": see router.h */
    enum body body;
    void (*serve)(struct exchange *exchange); /* with the whole request, and after each wake */
    const char *text;
    enum right right;
    enum awaits awaits; /* what session {id} must wait for first */

    /* Called after the header, before the body: a refusal is answered without reading the body. */
    int (*begin)(struct exchange *exchange, error *err);

    /* BODY_STREAM: takes some of the next bytes and returns how many; 0: none now, and the peer
     * must wait for exchange_wake(); -1: *err is answered, and the rest is ignored. */
    ssize_t (*take)(struct exchange *exchange, const char *data, size_t size, error *err);
    uint64_t body_max; /* of a BODY_STREAM; 0: bounded by `take` */

    /* For the OpenAPI document; see openapi.h. */
    const char *operation;         /* "createRun": the method of generated clients */
    const struct parameter *query; /* ends with a row without a name */
    const char *takes, *gives;     /* schemas of body and answer: every JSON body has one */
    bool may_lack_body;            /* BODY_JSON: an empty body is allowed */
    const char *mime;              /* of the answer; NULL: application/json */
    unsigned status;               /* of success; 0: 200 */
    bool streams;                  /* text/event-stream too, if the client asks for it */
    bool is_once;                  /* POST: an Idempotency-Key is honoured (idempotency_key.h) */
    bool is_repeatable;            /* POST: idempotent without a key */
    bool may_be_202;               /* with Prefer: respond-async, or before an approval */
    const char *or_503;            /* schema of a 503; NULL: Error */
};

struct route_table {
    const char *name; /* the tag in the OpenAPI document */
    const struct route *rows;
    size_t count;
    enum right right; /* of rows that name none */
    const char *text; /* of the tag */
};

/* One protocol: its routes, and how its requests differ from those of other doors. */
struct door {
    const struct route_table *const *tables; /* ends with NULL */

    /* Is the request too early? Called after it was admitted and after each wake, until false. It
     * may use exchange->user and ->closed meanwhile, and leaves them NULL. May be NULL. */
    bool (*is_early)(struct exchange *exchange);
    const void *own; /* for its handlers, by exchange->door; may be NULL */
};

/* One request and its answer; `user` belongs to the handler. */
struct exchange {
    struct http *http;
    struct service *service;    /* as given to http_open */
    struct caller caller;       /* without an account only if RIGHT_NONE */
    struct client_claim *claim; /* trace of the client, from the header traceparent; NULL: none */
    struct MHD_Connection *connection;
    const struct door *door; /* of the route; NULL: none */
    const struct route *route;
    enum right right;         /* of the route */
    char id[REQUEST_ID_SIZE]; /* the client's X-Request-Id if that is valid, else our own */
    char method[12];
    bool body_is_open;
    bool has_begun;  /* route->begin was called */
    bool is_waiting; /* suspended */
    bool is_gone;    /* the peer hung up while we waited */
    bool is_answered;
    bool is_retryable; /* a short retry can help, whatever its error code is */
    bool is_streaming;
    char *path; /* percent-decoded, and split at the parameters */
    const char *parameters[ROUTE_PARAMETERS_MAX];

    struct json_reader body;
    uint64_t body_bytes;
    error refusal;        /* before the handler: answered after the body */
    struct bytes headers; /* of the answer: name, NUL, value, NUL … */

    void *user;
    void (*closed)(struct exchange *exchange); /* the answer was sent, or the peer hung up */

    bool is_resting; /* exchange_rest() */
    bool needs_host; /* HTTP/1.1 */
    bool is_remote;  /* on TCP, not on a Unix socket */
    bool is_owner;   /* on a Unix socket, from root or http_settings.owner */
    bool is_queued, has_turn;
    unsigned status;  /* of the answer */
    deadline wake_at; /* at_ms 0: never */
    deadline look_at; /* when to call an idle stream's reader again; at_ms 0: never */
    uint64_t covers;  /* records of the log that a checkpoint must cover before the answer */
    uv_poll_t *watch; /* notices that the peer hangs up */
    int64_t began_ms;
    struct exchange *next_queued; /* request_turns.c */
    int64_t charged_us;
    deadline lingers_until; /* exchange_fail_early(); at_ms 0: never */

    const struct upgrade *upgrade; /* after it has left HTTP */
    struct MHD_UpgradeResponseHandle *upgraded;
};

/* How long a connection may be idle, and how long a header and a body may take. 0: no limit. */
struct http_patience {
    unsigned idle_s, header_s, body_s;
};

struct guard_names;

struct http_settings {
    const struct door *const *doors; /* ends with NULL */
    struct service *service;
    uint64_t body_max;
    bool is_private;                      /* one trusted peer: no time limits */
    const struct http_patience *patience; /* may change; NULL: no limits */
    const struct guard_names *names;      /* public hosts and origins; may change; NULL: none */
    unsigned owner;                       /* user id */

    /* Authenticates and authorizes the caller. Called before the body is read, when the route is
     * known. May be NULL. */
    int (*admit)(struct exchange *exchange, error *err);
    /* Adds headers to an answer before it is sent. May be NULL. */
    void (*answering)(struct exchange *exchange, unsigned status);
    void (*ended)(const struct exchange *exchange); /* for logs and counters; may be NULL */
    void (*last_closed)(struct service *service);   /* after the last connection */
};

/* Gives *ret_http, closed with http_close(). */
int http_open(uv_loop_t *loop, const struct http_settings *settings, struct http **ret_http,
              error *err);
void http_close(struct http *http);

/* Accepts no more connections: they wait in the backlog for the next daemon. */
void http_stop_listening(struct http *http);

unsigned http_connection_count(const struct http *http);
int64_t http_used_ms(const struct http *http);  /* when a connection last ended; 0: none has */
int64_t http_began_ms(const struct http *http); /* now_ms() when it was opened */

/* True if no request is being answered. */
bool http_is_idle(const struct http *http);

/* Serves connections that a listening socket accepts, or one that exists. Takes the descriptor. */
int http_listen(struct http *http, int socket, error *err);
int http_serve(struct http *http, int socket, error *err);

/* A header or a query value of the request; NULL if there is none. */
const char *exchange_header(const struct exchange *exchange, const char *name);
const char *exchange_query(const struct exchange *exchange, const char *name);
typedef void visit_value(void *context, const char *name, const char *value);
void exchange_each_header(const struct exchange *exchange, visit_value *each, void *context);
/* Likewise for the query, percent-decoded; `value` may be NULL. */
void exchange_each_query(const struct exchange *exchange, visit_value *each, void *context);

/* A number in the query, checked by the route's table; `otherwise` if it is missing. */
uint64_t exchange_query_count(const struct exchange *exchange, const char *name,
                              uint64_t otherwise);

/* Checks the query against the route's table: types, and that nothing is missing or unknown.
 * Fails  ERR_BAD_REQUEST. */
int exchange_check_query(const struct exchange *exchange, error *err);

/* Adds a header to the answer. Both texts are copied. */
void exchange_add_header(struct exchange *exchange, const char *name, const char *value);

/* Answers with JSON, or with text of another type. Takes the bytes. */
void exchange_answer(struct exchange *exchange, unsigned status, struct bytes *json);
void exchange_end_json(struct exchange *exchange, struct bytes *json,
                       const char *brackets); /* 200; closes them first */
void exchange_answer_as(struct exchange *exchange, unsigned status, const char *mime,
                        struct bytes *text);
void exchange_answer_nothing(struct exchange *exchange, unsigned status);
void exchange_fail(struct exchange *exchange, const error *cause);
/* Writes the error and a line break; gives the row of its code. */
const struct error_row *exchange_write_error(const struct exchange *exchange, const error *cause,
                                             struct bytes *json);
/* If `result` is 0, 200 with the JSON, which is taken; else the error. */
void exchange_answer_or_fail(struct exchange *exchange, int result, struct bytes *json,
                             const error *cause);

/* Answers with a file's bytes, or the part that was requested: Range, ETag and If-None-Match are
 * supported if `tag` (without quotes) is not NULL. Takes the descriptor. */
void exchange_file(struct exchange *exchange, int fd, uint64_t size, const char *mime,
                   const char *tag);

/* No answer yet: `serve` is called again after exchange_wake(), or at the deadline. */
void exchange_wait(struct exchange *exchange);
void exchange_wait_until(struct exchange *exchange, deadline end);
void exchange_wake(void *context); /* an exchange: may be the `woken` of a waker */

/* Closes the connection soon, if a client does not read its answer. */
void exchange_cut(struct exchange *exchange);

/* Writes at most `size` bytes of a stream. Returns how many; STREAM_LATER: called again after
 * exchange_wake(); STREAM_END. It is called less often for a slow peer, and nothing is buffered for
 * it. */
enum { STREAM_LATER = FLOW_LATER, STREAM_END = FLOW_END, STREAM_BROKEN = FLOW_BROKEN };
typedef ssize_t exchange_reader(struct exchange *exchange, char *bytes, size_t size);

/* Marks a stream that is open for long and mostly idle: it does not count as a request under way,
 * nor its connection among those that are bounded, if there is a place for it. */
void exchange_rest(struct exchange *exchange);

/* Server-sent events; comments keep an idle stream alive. */
void exchange_stream(struct exchange *exchange, exchange_reader *reader);

/* Any other stream; `size` is STREAM_OF_ANY_SIZE or exact. */
#define STREAM_OF_ANY_SIZE UINT64_MAX
void exchange_stream_as(struct exchange *exchange, unsigned status, const char *mime, uint64_t size,
                        exchange_reader *reader);

/* Leaves HTTP with 101 and `Upgrade: protocol`. Both functions get exchange->user: `opened` is
 * called once, with the socket (non-blocking, borrowed until exchange_downgrade()) and the bytes
 * that the peer has sent already; `closing` when the daemon ends, and must call
 * exchange_downgrade(). The exchange lives until then, and `closed` is called last. */
struct upgrade {
    void (*opened)(struct exchange *exchange, int socket, const char *early, size_t early_size);
    void (*closing)(struct exchange *exchange);
};
void exchange_upgrade(struct exchange *exchange, const char *protocol,
                      const struct upgrade *upgrade);
void exchange_downgrade(struct exchange *exchange);
uv_loop_t *exchange_loop(const struct exchange *exchange); /* for watching the socket */
