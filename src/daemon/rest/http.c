/* http.c - libmicrohttpd's own epoll set lies in libuv's: one descriptor that is readable when any
 * connection has something. */
#include "daemon/rest/http.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/table.h"
#include "daemon/json_writer.h"
#include "daemon/log.h"
#include "daemon/rest/guard.h"
#include "model/errors.h"

#include <errno.h>
#include <microhttpd.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONNECTIONS_MOST = 512,
    HEADER_BYTES_MOST = 32 * 1024,
    IDLE_SECONDS = 30,
    HEADER_MS = 60000, /* for a whole header, however it drips in */
    BODY_MS = 300000,  /* for a whole body */
    SWEEP_MS = 1000,
    STREAM_BLOCK = 32 * 1024,
    ACCEPTS_A_TURN = 16,
    HANDLES = 5, /* of libuv, besides those of listeners */
};

/* Bodies of all requests together. */
static const uint64_t bodies_most = UINT64_C(1) << 30;

struct connection {
    struct http *http;
    int fd;
    bool is_remote;   /* not a Unix socket */
    int64_t since_ms; /* it waits for a header since then; 0: it does not */
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
    uv_timer_t timer; /* when libmicrohttpd wants to be called */
    uv_timer_t sweep;
    uv_prepare_t prepare;
    uv_idle_t idle; /* runs while there is more to do at once */
    bool is_woken;
    bool is_closing;
    unsigned handles;
    struct listener listeners[LISTENERS_MOST];
    size_t listener_count;
    struct connection *connections;
    uint64_t bodies; /* bytes in flight */
};

/* --- the loop -----------------------------------------------------------------------------------
 */

static void on_timer(uv_timer_t *timer);
static void on_idle(uv_idle_t *idle);

static void run_mhd(struct http *http)
{
    http->is_woken = false;
    (void) MHD_run(http->mhd);
    MHD_UNSIGNED_LONG_LONG left_ms;
    bool wants_time = MHD_get_timeout(http->mhd, &left_ms) == MHD_YES;
    if (http->is_woken || (wants_time && left_ms == 0)) {
        (void) uv_idle_start(&http->idle, on_idle);
        return;
    }
    (void) uv_idle_stop(&http->idle);
    if (wants_time)
        (void) uv_timer_start(&http->timer, on_timer, left_ms, 0);
    else
        (void) uv_timer_stop(&http->timer);
}

static void on_timer(uv_timer_t *timer)
{
    run_mhd(timer->data);
}

static void on_idle(uv_idle_t *idle)
{
    run_mhd(idle->data);
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    (void) status;
    (void) events;
    run_mhd(poll->data);
}

static void on_prepare(uv_prepare_t *prepare)
{
    struct http *http = prepare->data;
    if (http->is_woken)
        run_mhd(http);
}

/* --- connections --------------------------------------------------------------------------------
 */

static struct connection *connection_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static void on_connection(void *context, struct MHD_Connection *mhd, void **socket_context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct http *http = context;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        struct connection *connection = calloc(1, sizeof *connection);
        *socket_context = connection;
        if (!connection)
            return;
        const union MHD_ConnectionInfo *fd =
            MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
        const union MHD_ConnectionInfo *address =
            MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        connection->http = http;
        connection->fd = fd ? fd->connect_fd : -1;
        connection->is_remote =
            !address || !address->client_addr || address->client_addr->sa_family != AF_UNIX;
        connection->since_ms = now_ms();
        connection->next = http->connections;
        if (http->connections)
            http->connections->before = connection;
        http->connections = connection;
        return;
    }
    struct connection *connection = *socket_context;
    if (!connection)
        return;
    *(connection->before ? &connection->before->next : &http->connections) = connection->next;
    if (connection->next)
        connection->next->before = connection->before;
    free(connection);
    *socket_context = NULL;
    if (!http->connections && http->settings.last_closed && !http->is_closing)
        http->settings.last_closed(http->settings.door);
}

/* A peer that lets a header or a body drip in is cut off, although it is never idle. */
static void on_sweep(uv_timer_t *timer)
{
    struct http *http = timer->data;
    int64_t now = now_ms();
    for (struct connection *connection = http->connections; connection;
         connection = connection->next) {
        const struct exchange *exchange = connection->exchange;
        bool late = connection->since_ms != 0
                        ? now - connection->since_ms > HEADER_MS
                        : exchange && exchange->body_is_open && now - exchange->began_ms > BODY_MS;
        if (late)
            (void) shutdown(connection->fd, SHUT_RDWR);
    }
}

int http_serve(struct http *http, int socket, error *err)
{
    auto_fd fd = socket;
    struct sockaddr_storage address = { 0 };
    socklen_t size = sizeof address;
    if (getpeername(fd, (struct sockaddr *) &address, &size) < 0 || address.ss_family == AF_UNIX) {
        address.ss_family = AF_UNIX;
        size = sizeof(sa_family_t);
    }
    /* libmicrohttpd closes the socket itself, also when it refuses it. */
    if (MHD_add_connection(http->mhd, take_fd(&fd), (struct sockaddr *) &address, size) != MHD_YES)
        return fail_os(err, "serve a connection");
    http->is_woken = true;
    return 0;
}

static void on_knock(uv_poll_t *poll, int status, int events)
{
    (void) status;
    (void) events;
    struct listener *listener = poll->data;
    for (int turn = 0; turn < ACCEPTS_A_TURN; turn++) {
        int fd = accept4(listener->socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        error err;
        if (http_serve(listener->http, fd, &err) < 0)
            log_event(LOG_DEBUG, "connection.refused", TEXT("cause", err.text));
    }
}

int http_listen(struct http *http, int socket, error *err)
{
    auto_fd fd = socket;
    if (http->listener_count == LISTENERS_MOST)
        return fail(err, ERR_BAD_REQUEST, "more than %d listening sockets", LISTENERS_MOST);
    struct listener *listener = &http->listeners[http->listener_count];
    int result = uv_poll_init(http->loop, &listener->poll, fd);
    if (result < 0)
        return fail(err, ERR_SYSTEM, "watch a listening socket: %s", uv_strerror(result));
    *listener = (struct listener){
        .http = http, .poll = listener->poll, .socket = take_fd(&fd), .is_open = true
    };
    listener->poll.data = listener;
    http->listener_count++;
    (void) uv_poll_start(&listener->poll, UV_READABLE, on_knock);
    return 0;
}

/* --- one request --------------------------------------------------------------------------------
 */

static void on_watch_closed(uv_handle_t *handle)
{
    free(handle);
}

static void stop_watching(struct exchange *exchange)
{
    if (!exchange->watch)
        return;
    exchange->watch->data = NULL;
    uv_close((uv_handle_t *) exchange->watch, on_watch_closed);
    exchange->watch = NULL;
}

static void exchange_free(struct exchange *exchange)
{
    stop_watching(exchange);
    if (exchange->closed)
        exchange->closed(exchange);
    json_reader_close(&exchange->body);
    exchange->http->bodies -= exchange->body_bytes;
    free(exchange);
}

static void on_completed(void *context, struct MHD_Connection *mhd, void **request,
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

static void on_hang_up(uv_poll_t *poll, int status, int events)
{
    struct exchange *exchange = poll->data;
    if (!exchange || (status >= 0 && !(events & UV_DISCONNECT)))
        return;
    exchange->is_gone = true;
    stop_watching(exchange);
    exchange_wake(exchange);
}

/* While a connection is suspended libmicrohttpd does not look at it; we look for its end ourselves.
 */
static void watch_peer(struct exchange *exchange)
{
    const struct connection *connection = connection_of(exchange->connection);
    if (exchange->watch || exchange->is_gone || !connection || connection->fd < 0)
        return;
    uv_poll_t *watch = calloc(1, sizeof *watch);
    if (!watch)
        return;
    if (uv_poll_init(exchange->http->loop, watch, connection->fd) < 0) {
        free(watch);
        return;
    }
    watch->data = exchange;
    exchange->watch = watch;
    (void) uv_poll_start(watch, UV_DISCONNECT, on_hang_up);
}

void exchange_wait(struct exchange *exchange)
{
    if (exchange->is_waiting || exchange->http->is_closing)
        return; /* libmicrohttpd ends the process if it is stopped while something is suspended */
    exchange->is_waiting = true;
    watch_peer(exchange);
    MHD_suspend_connection(exchange->connection);
}

void exchange_wake(struct exchange *exchange)
{
    if (!exchange->is_waiting)
        return;
    exchange->is_waiting = false;
    exchange->http->is_woken = true;
    MHD_resume_connection(exchange->connection);
}

const char *exchange_header(const struct exchange *exchange, const char *name)
{
    return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

const char *exchange_query(const struct exchange *exchange, const char *name)
{
    return MHD_lookup_connection_value(exchange->connection, MHD_GET_ARGUMENT_KIND, name);
}

/* --- answers ------------------------------------------------------------------------------------
 */

static void queue(struct exchange *exchange, unsigned status, struct MHD_Response *response,
                  const char *mime)
{
    static const struct {
        const char *name, *value;
    } always[] = {
        { "Cache-Control", "no-store" },
        { "X-Content-Type-Options", "nosniff" },
        { "Content-Security-Policy", "sandbox; default-src 'none'" },
    };
    if (!response)
        return;
    for_each(header, always)
        (void) MHD_add_response_header(response, header->name, header->value);
    (void) MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, mime);
    (void) MHD_add_response_header(response, "X-Request-Id", exchange->id);
    if (status == MHD_HTTP_TOO_MANY_REQUESTS)
        (void) MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    exchange->is_answered = MHD_queue_response(exchange->connection, status, response) == MHD_YES;
    MHD_destroy_response(response);
}

void exchange_answer(struct exchange *exchange, unsigned status, struct bytes *json)
{
    bytes_add_text(json, "\n");
    if (json->failed) {
        bytes_done(json);
        error err;
        (void) fail(&err, ERR_SYSTEM, "no memory for the answer");
        exchange_fail(exchange, &err);
        return;
    }
    struct MHD_Response *response =
        MHD_create_response_from_buffer(json->size, json->data, MHD_RESPMEM_MUST_FREE);
    if (response)
        *json = (struct bytes){ 0 };
    else
        bytes_done(json);
    queue(exchange, status, response, "application/json");
}

void exchange_fail(struct exchange *exchange, const error *cause)
{
    const struct error_row *row = error_row_of(cause->code);
    auto_bytes json = { 0 };
    json_open(&json, '{');
    json_key(&json, "error");
    json_open(&json, '{');
    json_string_field(&json, "code", row->json_code);
    json_string_field(&json, "message", cause->text);
    json_string_field(&json, "fault", error_fault(cause->code));
    json_flag_field(&json, "retryable", row->retryable);
    json_string_field(&json, "request_id", exchange->id);
    json_close(&json, '}');
    json_close(&json, '}');
    bytes_add_text(&json, "\n");
    if (row->http_status >= 500)
        log_event(LOG_WARNING, "request.failed", TEXT("request", exchange->id),
                  TEXT("cause", cause->text));
    struct MHD_Response *response =
        MHD_create_response_from_buffer(json.size, json.data, MHD_RESPMEM_MUST_COPY);
    queue(exchange, (unsigned) row->http_status, response, "application/json");
}

void exchange_file(struct exchange *exchange, int fd, uint64_t size, const char *mime)
{
    struct MHD_Response *response = MHD_create_response_from_fd64(size, fd);
    if (!response)
        (void) close(fd);
    else
        (void) MHD_add_response_header(response, "Content-Disposition", "attachment");
    queue(exchange, MHD_HTTP_OK, response, mime);
}

struct stream {
    struct exchange *exchange;
    exchange_reader *read;
};

static ssize_t read_stream(void *context, uint64_t position, char *bytes, size_t size)
{
    (void) position;
    struct stream *stream = context;
    if (stream->exchange->is_gone || stream->exchange->http->is_closing)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    ssize_t got = stream->read(stream->exchange, bytes, size);
    if (got == STREAM_END)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (got == STREAM_LATER)
        exchange_wait(stream->exchange);
    return got;
}

void exchange_stream(struct exchange *exchange, exchange_reader *reader)
{
    struct stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return;
    *stream = (struct stream){ exchange, reader };
    exchange->is_streaming = true;
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, stream, free);
    if (!response)
        free(stream);
    queue(exchange, MHD_HTTP_OK, response, "text/event-stream");
}

/* --- from header to handler ---------------------------------------------------------------------
 */

/* Matches part by part; what stands for a part in braces is kept. */
static bool path_matches(const char *pattern, const char *path,
                         char parameters[ROUTE_PARAMETERS_MOST][PARAMETER_SIZE])
{
    size_t count = 0;
    while (*pattern) {
        if (*pattern != '{') {
            if (*pattern++ != *path++)
                return false;
            continue;
        }
        size_t length = strcspn(path, "/");
        if (length == 0 || length >= PARAMETER_SIZE || count == ROUTE_PARAMETERS_MOST)
            return false;
        memcpy(parameters[count], path, length);
        parameters[count++][length] = '\0';
        path += length;
        pattern += strcspn(pattern, "}") + 1;
    }
    return *path == '\0';
}

static int find_route(struct exchange *exchange, const char *method, const char *path, error *err)
{
    const struct http_settings *settings = &exchange->http->settings;
    bool exists = false;
    for (size_t i = 0; i < settings->route_count; i++) {
        const struct route *route = &settings->routes[i];
        if (!path_matches(route->path, path, exchange->parameters))
            continue;
        exists = true;
        bool is_head = strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0;
        if (!is_head && strcmp(route->method, method) != 0)
            continue;
        exchange->route = route;
        return 0;
    }
    if (exists)
        return fail(err, ERR_NOT_FOUND, "%.16s is not served for %.100s", method, path);
    return fail(err, ERR_NOT_FOUND, "nothing is served at %.100s; see GET /healthz and /v1/…",
                path);
}

static int check_length(const struct exchange *exchange, error *err)
{
    const char *length = exchange_header(exchange, MHD_HTTP_HEADER_CONTENT_LENGTH);
    uint64_t most = exchange->http->settings.body_most;
    if (length && strtoull(length, NULL, 10) > most)
        return fail(err, ERR_TOO_LARGE, "the body has %.20s bytes, %llu are allowed", length,
                    (unsigned long long) most);
    return 0;
}

/* Everything that the header decides. */
static int admit(struct exchange *exchange, const struct connection *connection, const char *method,
                 const char *path, error *err)
{
    if (guard_origin(exchange_header(exchange, MHD_HTTP_HEADER_HOST),
                     exchange_header(exchange, MHD_HTTP_HEADER_ORIGIN),
                     !connection || connection->is_remote, err) < 0 ||
        find_route(exchange, method, path, err) < 0 || check_length(exchange, err) < 0)
        return -1;
    if (exchange->route->body == BODY_JSON && json_reader_open(&exchange->body, err) < 0)
        return -1;
    return 0;
}

static enum MHD_Result begin_exchange(struct http *http, struct MHD_Connection *mhd,
                                      const char *method, const char *path, void **request)
{
    struct exchange *exchange = calloc(1, sizeof *exchange);
    if (!exchange)
        return MHD_NO;
    *request = exchange;
    exchange->http = http;
    exchange->door = http->settings.door;
    exchange->connection = mhd;
    exchange->began_ms = now_ms();
    exchange->body_is_open = true;
    unsigned char random[8];
    randombytes_buf(random, sizeof random);
    (void) snprintf(exchange->id, sizeof exchange->id, "req_");
    (void) sodium_bin2hex(exchange->id + 4, sizeof exchange->id - 4, random, sizeof random);

    struct connection *connection = connection_of(mhd);
    if (connection) {
        connection->since_ms = 0;
        connection->exchange = exchange;
    }
    if (admit(exchange, connection, method, path, &exchange->refusal) < 0)
        exchange_fail(exchange, &exchange->refusal); /* without reading the body */
    return MHD_YES;
}

static enum MHD_Result take_body(struct exchange *exchange, const char *data, size_t *size)
{
    struct http *http = exchange->http;
    exchange->body_bytes += *size;
    http->bodies += *size;
    if (exchange->body_bytes > http->settings.body_most && exchange->refusal.code == ERR_NONE)
        (void) fail(&exchange->refusal, ERR_TOO_LARGE,
                    "the body has more than the %llu bytes allowed",
                    (unsigned long long) http->settings.body_most);
    if (http->bodies > bodies_most && exchange->refusal.code == ERR_NONE)
        (void) fail(&exchange->refusal, ERR_BUSY, "too many large requests at once; try again");
    if (exchange->body_bytes > 2 * http->settings.body_most)
        return MHD_NO;
    if (exchange->refusal.code != ERR_NONE)
        json_reader_close(&exchange->body); /* the rest passes by unread */
    else if (exchange->route->body == BODY_JSON)
        json_reader_take(&exchange->body, data, *size);
    *size = 0;
    return MHD_YES;
}

/* NOLINTNEXTLINE(readability-function-size): libmicrohttpd's own signature */
static enum MHD_Result on_request(void *context, struct MHD_Connection *mhd, const char *path,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **request)
{
    (void) version;
    struct exchange *exchange = *request;
    if (!exchange)
        return begin_exchange(context, mhd, method, path, request);
    if (exchange->is_answered) {
        *size = 0;
        return MHD_YES;
    }
    if (*size > 0)
        return take_body(exchange, data, size);
    exchange->body_is_open = false;
    if (exchange->is_gone)
        return MHD_NO;
    if (exchange->refusal.code != ERR_NONE)
        exchange_fail(exchange, &exchange->refusal);
    else
        exchange->route->serve(exchange);
    return exchange->is_answered || exchange->is_waiting ? MHD_YES : MHD_NO;
}

/* --- the whole ----------------------------------------------------------------------------------
 */

PRINTF(2, 0) static void on_log(void *context, const char *format, va_list values)
{
    (void) context;
    char text[256];
    (void) vsnprintf(text, sizeof text, format, values);
    text[strcspn(text, "\n")] = '\0';
    log_event(LOG_DEBUG, "http.said", TEXT("text", text));
}

static int start_mhd(struct http *http, error *err)
{
    unsigned idle = http->settings.is_private ? 0 : IDLE_SECONDS;
    http->mhd = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG, 0,
        NULL, NULL, on_request, http, MHD_OPTION_EXTERNAL_LOGGER, on_log, http,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned) CONNECTIONS_MOST,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t) HEADER_BYTES_MOST,
        MHD_OPTION_CONNECTION_TIMEOUT, idle, MHD_OPTION_NOTIFY_COMPLETED, on_completed, http,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_END);
    if (!http->mhd)
        return fail_os(err, "start libmicrohttpd");
    return 0;
}

int http_open(uv_loop_t *loop, const struct http_settings *settings, struct http **ret_http,
              error *err)
{
    struct http *http = calloc(1, sizeof *http);
    if (!http)
        return fail(err, ERR_SYSTEM, "no memory for HTTP");
    http->settings = *settings;
    http->loop = loop;
    if (start_mhd(http, err) < 0) {
        free(http);
        return -1;
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->mhd, MHD_DAEMON_INFO_EPOLL_FD);
    int result = info ? uv_poll_init(loop, &http->poll, info->epoll_fd) : UV_EINVAL;
    if (result < 0) {
        MHD_stop_daemon(http->mhd);
        free(http);
        return fail(err, ERR_SYSTEM, "watch libmicrohttpd: %s", uv_strerror(result));
    }
    http->poll.data = http->timer.data = http->sweep.data = http->prepare.data = http->idle.data =
        http;
    (void) uv_timer_init(loop, &http->timer);
    (void) uv_timer_init(loop, &http->sweep);
    (void) uv_prepare_init(loop, &http->prepare);
    (void) uv_idle_init(loop, &http->idle);
    (void) uv_poll_start(&http->poll, UV_READABLE, on_ready);
    (void) uv_prepare_start(&http->prepare, on_prepare);
    if (!settings->is_private)
        (void) uv_timer_start(&http->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
    *ret_http = http;
    return 0;
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct http *http = handle->data;
    if (--http->handles > 0)
        return;
    MHD_stop_daemon(http->mhd);
    free(http);
}

static void on_listener_closed(uv_handle_t *handle)
{
    struct listener *listener = handle->data;
    (void) close(listener->socket);
    handle->data = listener->http;
    on_handle_closed(handle);
}

void http_stop_listening(struct http *http)
{
    for (size_t i = 0; i < http->listener_count; i++)
        if (http->listeners[i].is_open)
            (void) uv_poll_stop(&http->listeners[i].poll);
}

bool http_is_idle(const struct http *http)
{
    for (const struct connection *connection = http->connections; connection;
         connection = connection->next)
        if (connection->exchange)
            return false;
    return true;
}

void http_close(struct http *http)
{
    http->is_closing = true;
    for (struct connection *connection = http->connections; connection;
         connection = connection->next)
        if (connection->exchange) {
            stop_watching(connection->exchange);
            exchange_wake(connection->exchange);
        }
    (void) MHD_run(http->mhd); /* libmicrohttpd wants nothing suspended when it stops */
    uv_handle_t *handles[HANDLES] = { (uv_handle_t *) &http->poll, (uv_handle_t *) &http->timer,
                                      (uv_handle_t *) &http->sweep, (uv_handle_t *) &http->prepare,
                                      (uv_handle_t *) &http->idle };
    http->handles = (unsigned) (HANDLES + http->listener_count);
    for (size_t i = 0; i < http->listener_count; i++)
        uv_close((uv_handle_t *) &http->listeners[i].poll, on_listener_closed);
    for (size_t i = 0; i < HANDLES; i++)
        uv_close(handles[i], on_handle_closed);
}
