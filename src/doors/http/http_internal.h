/* http_internal.h - shared by the files behind http.h: http.c (connections), request.c (requests),
 * response.c and file_response.c (answers), upgrade.c. No other file includes it. */
#pragma once

#include "doors/http/http.h"
#include "doors/http/refusals.h"

#include <microhttpd.h>

enum { CONNECTION_BYTES = 32 * 1024 }; /* libmicrohttpd's memory for each, including the header */

struct connection {
    struct http *http;
    struct MHD_Connection *mhd;
    int fd;
    bool is_remote;     /* not a Unix socket */
    bool is_owner;      /* root, or the owner of the daemon */
    int64_t since_ms;   /* when it began to wait for a header; 0: it does not */
    int unread;         /* bytes in the kernel's send queue at the last look */
    int64_t stalled_ms; /* since when the peer has read none; 0: it reads */
    bool is_cut;
    bool is_odd;        /* the target of its request has blanks or control characters */
    const char *target; /* its copy in libmicrohttpd's memory */
    struct refused refused;
    struct exchange *exchange;
    struct connection *next, *before;
};

struct listener {
    struct http *http;
    uv_poll_t poll;
    int socket;
    bool is_open;
};

struct http {
    struct http_settings settings;
    uv_loop_t *loop;
    struct MHD_Daemon *mhd;
    uv_poll_t poll;
    uv_timer_t timer; /* for libmicrohttpd's timeouts */
    uv_timer_t sweep;
    uv_timer_t alarm; /* for the earliest exchange_wait_until() */
    deadline alarm_at;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_idle_t idle; /* active while libmicrohttpd has more to do at once */
    bool is_woken;
    bool has_answered; /* in this call of libmicrohttpd */
    unsigned exchange_count;
    bool is_closing;
    bool has_stopped; /* it accepts no more connections */
    bool is_full;     /* new connections wait in the backlog */
    unsigned handles;
    struct listener listeners[LISTENERS_MAX];
    size_t listener_count;
    struct connection *connections;
    unsigned connection_count, connections_max; /* without resting ones */
    unsigned resting_count, resting_max;
    int64_t used_ms;               /* when a connection last ended */
    uint64_t bodies;               /* bytes of bodies in memory */
    struct exchange *first_queued; /* request_turns.c */
    int64_t turn_us;               /* time of requests in this turn of the loop */
    int64_t began_ms;
    unsigned sweeps;
    struct refusals refusals;
};

static inline struct connection *connection_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

/* upgrade.c: closes those whose key was revoked or has expired. */
void close_upgraded_without_key(struct http *http);

/* resting.c: how many exchanges of its tenant rest, or are under way, including this one. */
unsigned exchanges_of_tenant(const struct exchange *exchange, bool are_resting);

/* http.c */
void listen_again(struct http *http);
void exchange_stop_watching(struct exchange *exchange);

static inline bool connections_are_used_up(const struct http *http, unsigned but)
{
    return http->connection_count - http->resting_count + but >= http->connections_max;
}

/* resting.c */
void exchange_stop_resting(struct exchange *exchange);
void exchange_give_back(const struct exchange *exchange);

/* slow_peers.c */
void on_sweep(uv_timer_t *timer);
void make_room(struct http *http);

/* request.c: libmicrohttpd's handlers. */
/* NOLINTNEXTLINE(readability-function-size): libmicrohttpd's own signature */
enum MHD_Result take_request(void *context, struct MHD_Connection *mhd, const char *path,
                             const char *method, const char *version, const char *data,
                             size_t *size, void **request);
void request_completed(void *context, struct MHD_Connection *mhd, void **request,
                       enum MHD_RequestTerminationCode why);
size_t unescape_url(void *context, struct MHD_Connection *mhd, char *text);
void *look_at_target(void *context, const char *target, struct MHD_Connection *mhd);

/* request_turns.c: may a request begin that was admitted? If not it waits, and is tried again. */
bool request_has_turn(struct exchange *exchange);
void request_serve(struct exchange *exchange); /* calls its handler */
void request_leave_queue(struct exchange *exchange);
void requests_begin_turn(struct http *http); /* of the loop */

/* response.c: adds the common headers to an answer and sends it. Takes the response, which may be
 * NULL. */
void exchange_queue(struct exchange *exchange, unsigned status, struct MHD_Response *response,
                    const char *mime);

/* upgrade.c */
void exchange_close_upgraded(struct exchange *exchange);

/* response.c: answers at once while the body is still arriving, since a large one may never end.
 * The rest is read and ignored for half a minute: a client loses an answer if the connection is
 * closed while it sends. Then the connection is closed. */
bool exchange_fail_early(struct exchange *exchange, const error *cause);

/* trace_context.c: reads the client's trace into caller.claim. */
void read_trace_context(struct exchange *exchange);
