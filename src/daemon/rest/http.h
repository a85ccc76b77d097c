/* http.h - HTTP/1.1 for all doors: connections, bodies, answers, streams; libmicrohttpd under
 * libuv.
 *
 * Everything a peer can hold on to is bounded: connections, header bytes, body bytes, and the time
 * for each of them. A route's handler answers at once, waits (and is called again when it is
 * woken), or streams. */
#pragma once

#include "base/error.h"
#include "daemon/bytes.h"
#include "daemon/json_reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct MHD_Connection;
struct MHD_Daemon;
struct exchange;
struct http;

enum { REQUEST_ID_SIZE = 21, ROUTE_PARAMETERS_MOST = 2, PARAMETER_SIZE = 128, LISTENERS_MOST = 8 };

enum body { BODY_NONE, BODY_JSON };

/* One row of the route table, from which the OpenAPI document will be printed. */
struct route {
    const char *method;
    const char *path; /* "/v1/runs/{id}": a part in braces is a parameter */
    enum body body;
    void (*serve)(struct exchange *exchange); /* the whole request is here, or it has been woken */
    const char *text;
};

/* What one request has with it; `user` is the handler's. */
struct exchange {
    struct http *http;
    void *door; /* as given to http_open */
    struct MHD_Connection *connection;
    const struct route *route;
    char id[REQUEST_ID_SIZE];
    char parameters[ROUTE_PARAMETERS_MOST][PARAMETER_SIZE];

    struct json_reader body;
    uint64_t body_bytes;
    error refusal; /* found before the handler: it is answered once the body has passed */
    bool body_is_open;

    void *user;
    void (*closed)(struct exchange *exchange); /* the answer is out, or the peer is gone */

    bool is_waiting; /* suspended */
    bool is_gone;    /* the peer hung up while we waited */
    bool is_answered;
    bool is_streaming;
    uv_poll_t *watch; /* for a peer that hangs up */
    int64_t began_ms;
};

struct http_settings {
    const struct route *routes;
    size_t route_count;
    void *door;
    uint64_t body_most;
    bool is_private;                 /* one trusted peer: no time limits */
    void (*last_closed)(void *door); /* the last connection has gone */
};

/* Gives *ret_http, closed with http_close(). */
int http_open(uv_loop_t *loop, const struct http_settings *settings, struct http **ret_http,
              error *err);
void http_close(struct http *http);

/* Takes no further connection: callers wait at the socket for whoever listens next. */
void http_stop_listening(struct http *http);

/* True if no request is being answered. */
bool http_is_idle(const struct http *http);

/* Serves connections that a listening socket accepts, or one that exists. Takes the descriptor. */
int http_listen(struct http *http, int socket, error *err);
int http_serve(struct http *http, int socket, error *err);

/* Answers with JSON. Takes the bytes. */
void exchange_answer(struct exchange *exchange, unsigned status, struct bytes *json);
void exchange_fail(struct exchange *exchange, const error *cause);

/* Answers with a file's bytes. Takes the descriptor. */
void exchange_file(struct exchange *exchange, int fd, uint64_t size, const char *mime);

/* Nothing to say yet: `serve` is called again after exchange_wake(). */
void exchange_wait(struct exchange *exchange);
void exchange_wake(struct exchange *exchange);

/* Fills at most `size` bytes of a stream. Returns how many; STREAM_LATER: woken by exchange_wake();
 * STREAM_END. */
enum { STREAM_LATER = 0, STREAM_END = -1 };
typedef ssize_t exchange_reader(struct exchange *exchange, char *bytes, size_t size);
void exchange_stream(struct exchange *exchange, exchange_reader *reader);

/* A header or a query value of the request; NULL if there is none. */
const char *exchange_header(const struct exchange *exchange, const char *name);
const char *exchange_query(const struct exchange *exchange, const char *name);
