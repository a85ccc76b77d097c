/* http.h - HTTP/1.1 for all doors: connections, bodies, answers, streams; libmicrohttpd under
 * libuv.
 *
 * Everything a peer can hold on to is bounded: connections, header bytes, body bytes, and the time
 * for each of them (slow_peers.c).
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
 * and one line in routes.c. The OpenAPI document is printed from the same rows: .query, .takes and
 * .gives name what openapi.h describes.
 *
 * A handler answers (exchange_answer, exchange_file, exchange_fail), waits (exchange_wait: it is
 * called again after exchange_wake), streams (exchange_stream), or leaves HTTP (exchange_upgrade).
 * It is called when the whole request is in; what it keeps between calls it hangs on
 * exchange->user, and frees in exchange->closed, which is called however the exchange ends. */
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
    BODY_NONE,  /* what comes is thrown away */
    BODY_JSON,  /* parsed as it comes, into exchange->body; at most http_settings.body_max */
    BODY_STREAM /* given to `take` piece by piece, never kept */
};

/* What a route reads of its query and of its header. Types are written as in
 * engine/service/schema/schema.h. */
enum place { IN_QUERY, IN_HEADER };
struct parameter {
    const char *name; /* NULL ends a list */
    enum place place;
    const char *type;
    const char *text;
    bool is_required; /* in the query */
};

/* One row of a route table. What stands below `text` may be left out. */
struct route {
    const char *method; /* GET serves HEAD too; "ANY" is every method */
    const char *path;   /* "/v1/runs/{id}": see router.h */
    enum body body;
    void (*serve)(struct exchange *exchange); /* the whole request is here, or it has been woken */
    const char *text;
    enum right right;
    enum awaits awaits; /* what has to be so of the session {id} first */

    /* The header is here, the body is not: a refusal is answered without reading it. */
    int (*begin)(struct exchange *exchange, error *err);

    /* BODY_STREAM: takes some of the next bytes and returns how many; 0: none now, and the peer is
     * held up until exchange_wake(); -1: *err is answered, and what follows is thrown away. */
    ssize_t (*take)(struct exchange *exchange, const char *data, size_t size, error *err);
    uint64_t body_max; /* of a BODY_STREAM; 0: `take` bounds it */

    /* For the OpenAPI document; see openapi.h. */
    const char *operation;         /* "createRun": the method of generated clients */
    const struct parameter *query; /* ends with a row without a name */
    const char *takes, *gives;     /* schemas of body and answer: every body of JSON has one */
    bool may_lack_body;            /* BODY_JSON: then it says nothing */
    const char *mime;              /* of the answer; NULL: application/json */
    unsigned status;               /* of a good answer; 0: 200 */
    bool streams;                  /* text/event-stream too, if the client asks for it */
    bool is_once;                  /* POST: an Idempotency-Key is honoured (idempotency_key.h) */
    bool is_repeatable; /* POST: done twice it is as if done once; a key changes nothing */
    bool may_be_202;    /* with Prefer: respond-async, or where a person is asked first */
    const char *or_503; /* schema of a 503; NULL: Error */
};

struct route_table {
    const char *name; /* the tag in the OpenAPI document */
    const struct route *rows;
    size_t count;
    enum right right; /* of rows that name none */
    const char *text; /* of the tag */
};

/* One protocol: what it serves, and what is its own of the way of a request. */
struct door {
    const struct route_table *const *tables; /* ends with NULL */

    /* Has it come too early? Asked when it was admitted, and again each time that it is woken,
     * until false. It may use exchange->user and ->closed meanwhile, and leaves them NULL. May be
     * NULL. */
    bool (*is_early)(struct exchange *exchange);
    const void *own; /* what its handlers find by exchange->door; may be NULL */
};

/* What one request has with it; `user` is the handler's. */
struct exchange {
    struct http *http;
    struct service *service;    /* as given to http_open */
    struct caller caller;       /* without an account only with RIGHT_NONE */
    struct client_claim *claim; /* of its trace, by the header traceparent; NULL: none */
    struct MHD_Connection *connection;
    const struct door *door; /* that serves the route; NULL: there is none */
    const struct route *route;
    enum right right;         /* of the route */
    char id[REQUEST_ID_SIZE]; /* the client's X-Request-Id if it is a plain word, else ours */
    char method[12];
    char *path; /* as it came, percent signs resolved, cut up at the parameters */
    const char *parameters[ROUTE_PARAMETERS_MAX];

    struct json_reader body;
    uint64_t body_bytes;
    error refusal; /* found before the handler: it is answered once the body has passed */
    bool body_is_open;
    bool has_begun;       /* its time has come: route->begin was asked */
    struct bytes headers; /* of the answer: name, NUL, value, NUL … */

    void *user;
    void (*closed)(struct exchange *exchange); /* the answer is out, or the peer is gone */

    bool is_waiting; /* suspended */
    bool is_gone;    /* the peer hung up while we waited */
    bool is_answered;
    bool is_retryable; /* what refuses it is over in a moment, whatever its code says */
    bool is_streaming;
    bool is_resting;  /* exchange_rest() */
    bool needs_host;  /* HTTP/1.1 */
    bool is_remote;   /* it came by TCP, not by a Unix socket */
    bool is_owner;    /* it came by a Unix socket from root or http_settings.owner */
    deadline wake_at; /* at_ms 0: never by itself */
    deadline look_at; /* of a stream that has nothing to say: it is asked again then; at_ms 0 */
    uv_poll_t *watch; /* for a peer that hangs up */
    int64_t began_ms;
    struct exchange *next_queued; /* request_turns.c */
    bool is_queued, has_turn;
    int64_t charged_us;
    unsigned status;        /* that was answered */
    deadline lingers_until; /* exchange_fail_early(); at_ms 0: never */

    const struct upgrade *upgrade; /* while it has left HTTP */
    struct MHD_UpgradeResponseHandle *upgraded;
};

/* How long a connection may be silent, and a header and a body may take. 0: without limit. */
struct http_patience {
    unsigned idle_s, header_s, body_s;
};

struct guard_names;

struct http_settings {
    const struct door *const *doors; /* ends with NULL */
    struct service *service;
    uint64_t body_max;
    bool is_private;                      /* one trusted peer: no time limits */
    const struct http_patience *patience; /* it may change; NULL: endless */
    const struct guard_names *names;      /* of proxies and pages; may change; NULL: none */
    unsigned owner;                       /* user id */

    /* Authenticates and authorizes the caller. Asked before the body is read, when the route is
     * known. May be NULL. */
    int (*admit)(struct exchange *exchange, error *err);
    /* Adds headers to an answer that is about to leave. May be NULL. */
    void (*answering)(struct exchange *exchange, unsigned status);
    void (*ended)(const struct exchange *exchange); /* for logs and counters; may be NULL */
    void (*last_closed)(struct service *service);   /* the last connection has gone */
};

/* Gives *ret_http, closed with http_close(). */
int http_open(uv_loop_t *loop, const struct http_settings *settings, struct http **ret_http,
              error *err);
void http_close(struct http *http);

/* Takes no further connection: connections wait in the backlog for the next daemon. */
void http_stop_listening(struct http *http);

unsigned http_connection_count(const struct http *http);
int64_t
http_used_ms(const struct http *http); /* when a connection ended the last time; 0: none has */
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
/* Likewise for the query, undone of its percent signs; `value` may be NULL. */
void exchange_each_query(const struct exchange *exchange, visit_value *each, void *context);

/* A number in the query, with the bounds of the route's table; `otherwise` if it is not there. */
uint64_t exchange_query_count(const struct exchange *exchange, const char *name,
                              uint64_t otherwise);

/* Is the query as the route's table says? Words and numbers are checked, and that nothing lacks or
 * is unknown.
 * Fails  ERR_BAD_REQUEST. */
int exchange_check_query(const struct exchange *exchange, error *err);

/* Puts a header into the answer that follows. Both are copied. */
void exchange_add_header(struct exchange *exchange, const char *name, const char *value);

/* Answers with JSON, or with text of another type. Takes the bytes. */
void exchange_answer(struct exchange *exchange, unsigned status, struct bytes *json);
void exchange_end_json(struct exchange *exchange, struct bytes *json,
                       const char *brackets); /* 200; closes them first */
void exchange_answer_as(struct exchange *exchange, unsigned status, const char *mime,
                        struct bytes *text);
void exchange_answer_nothing(struct exchange *exchange, unsigned status);
void exchange_fail(struct exchange *exchange, const error *cause);
/* 200 with the JSON, which is taken; or, if the result is not 0, the error. */
void exchange_answer_or_fail(struct exchange *exchange, int result, struct bytes *json,
                             const error *cause);

/* Answers with a file's bytes, or the part that was asked for: Range, ETag and If-None-Match are
 * served if `tag` (without quotes) is not NULL. Takes the descriptor. */
void exchange_file(struct exchange *exchange, int fd, uint64_t size, const char *mime,
                   const char *tag);

/* Nothing to say yet: `serve` is called again after exchange_wake(), or at the deadline. */
void exchange_wait(struct exchange *exchange);
void exchange_wait_until(struct exchange *exchange, deadline end);
void exchange_wake(void *context); /* an exchange: may be the `woken` of a waker */

/* Breaks the connection off, soon: a client that does not read its answer holds it no more. */
void exchange_cut(struct exchange *exchange);

/* Fills at most `size` bytes of a stream. Returns how many; STREAM_LATER: woken by exchange_wake();
 * STREAM_END. A peer that reads slowly is asked less often; nothing is kept for it. */
enum { STREAM_LATER = FLOW_LATER, STREAM_END = FLOW_END, STREAM_BROKEN = FLOW_BROKEN };
typedef ssize_t exchange_reader(struct exchange *exchange, char *bytes, size_t size);

/* This stream will be open for long and say little: it does not count as a request under way, nor
 * its connection as one of those that others wait for, if there is a place for it. */
void exchange_rest(struct exchange *exchange);

/* Server-sent events; a comment keeps them alive while there is nothing to say. */
void exchange_stream(struct exchange *exchange, exchange_reader *reader);

/* Any other stream; `size` is STREAM_OF_ANY_SIZE or exact. */
#define STREAM_OF_ANY_SIZE UINT64_MAX
void exchange_stream_as(struct exchange *exchange, unsigned status, const char *mime, uint64_t size,
                        exchange_reader *reader);

/* Leaves HTTP with 101 and `Upgrade: protocol`. Both are called with exchange->user as it is then:
 * `opened` once, with the socket (non-blocking, borrowed until exchange_downgrade()) and with what
 * the peer has sent already; `closing` if the daemon goes, and it must call exchange_downgrade().
 * The exchange lives until then, and `closed` is called last. */
struct upgrade {
    void (*opened)(struct exchange *exchange, int socket, const char *early, size_t early_size);
    void (*closing)(struct exchange *exchange);
};
void exchange_upgrade(struct exchange *exchange, const char *protocol,
                      const struct upgrade *upgrade);
void exchange_downgrade(struct exchange *exchange);
uv_loop_t *exchange_loop(const struct exchange *exchange); /* to watch the socket with */
