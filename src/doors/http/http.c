/* http.c - libmicrohttpd has its own epoll set. Its descriptor is in libuv's loop, and is readable
 * when any connection has an event. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/open_files.h"
#include "doors/http/authenticate.h"
#include "doors/http/http_internal.h"
#include "engine/service/service_observe.h"

#include <errno.h>
#include <microhttpd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    SWEEP_MS = 1000,
    CLOSING_MAX = 64, /* closed ones that libmicrohttpd still counts */
    ACCEPTS_A_TURN = 16,
    BUSY_MAX = 512, /* connections that do not rest */
    HANDLES = 7,    /* of libuv, besides those of listeners */
};

/* --- the loop --------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer);
static void on_idle(uv_idle_t *idle);

static void run_mhd(struct http *http)
{
    http->is_woken = false;
    struct service_work_before before = service_work_enter(WORK_HTTP, NULL);
    (void) MHD_run(http->mhd);
    service_work_leave(before);
    if (http->has_answered && http->exchange_count == 0)
        (void) sched_yield(); /* lets the peer read the answer before libmicrohttpd cleans up */
    http->has_answered = false;
    MHD_UNSIGNED_LONG_LONG left_ms;
    bool wants_time = MHD_get_timeout(http->mhd, &left_ms) == MHD_YES;
    if (http->is_woken || http->first_queued || (wants_time && left_ms == 0)) {
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
    requests_begin_turn(http);
    if (http->is_woken)
        run_mhd(http);
}

/* Sends new answers before timers run: a sandbox that a timer builds would take the processor. */
static void on_check(uv_check_t *check)
{
    struct http *http = check->data;
    if (http->is_woken)
        run_mhd(http);
}

/* --- connections ------------------------------------------------------------------------------ */

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
        connection->is_owner =
            http->settings.is_private ||
            (!connection->is_remote && peer_is_owner(connection->fd, http->settings.owner));
        connection->since_ms = now_ms();
        connection->mhd = mhd;
        connection->next = http->connections;
        if (http->connections)
            http->connections->before = connection;
        http->connections = connection;
        http->connection_count++;
        return;
    }
    struct connection *connection = *socket_context;
    if (!connection)
        return;
    void *request = connection->exchange;
    if (request) /* not watched again after a wait, and libmicrohttpd has not reported its end */
        request_completed(http, mhd, &request, MHD_REQUEST_TERMINATED_WITH_ERROR);
    *(connection->before ? &connection->before->next : &http->connections) = connection->next;
    if (connection->next)
        connection->next->before = connection->before;
    http->connection_count--;
    http->used_ms = now_ms();
    free(connection);
    *socket_context = NULL;
    if (http->is_full)
        listen_again(http);
    if (!http->connections && http->settings.last_closed && !http->is_closing)
        http->settings.last_closed(http->settings.service);
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
    /* libmicrohttpd closes the socket itself, also if it refuses the connection. It looks for a
     * refused one in the list of connections without their own timeout (0.9.75). */
    if (MHD_add_connection(http->mhd, take_fd(&fd), (struct sockaddr *) &address, size) != MHD_YES)
        return fail_os(err, "serve a connection");
    if (http->settings.patience && http->connections)
        (void) MHD_set_connection_option(http->connections->mhd, MHD_CONNECTION_OPTION_TIMEOUT,
                                         http->settings.patience->idle_s);
    http->is_woken = true;
    return 0;
}

static void stop_accepting(struct http *http)
{
    for (size_t i = 0; i < http->listener_count; i++)
        if (http->listeners[i].is_open)
            (void) uv_poll_stop(&http->listeners[i].poll);
}

/* Stops accepting: connections wait in the backlog until on_connection() or on_sweep() call
 * listen_again(). */
static void wait_for_room(struct http *http)
{
    make_room(http);
    stop_accepting(http);
    http->is_full = true;
}

static void on_knock(uv_poll_t *poll, int status, int events)
{
    (void) status;
    (void) events;
    struct listener *listener = poll->data;
    for (int turn = 0; turn < ACCEPTS_A_TURN; turn++) {
        if (connections_are_used_up(listener->http, 0)) {
            wait_for_room(listener->http);
            return;
        }
        int fd = accept4(listener->socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE))
            wait_for_room(listener->http); /* on_sweep() tries again */
        if (fd < 0)
            return;
        error err;
        make_room(listener->http);
        if (http_serve(listener->http, fd, &err) < 0)
            service_log_debug(LOGGED_CONNECTION_REFUSED, "cause", err.text);
    }
}

void listen_again(struct http *http)
{
    http->is_full = false;
    for (size_t i = 0; i < http->listener_count && !http->has_stopped; i++)
        if (http->listeners[i].is_open)
            (void) uv_poll_start(&http->listeners[i].poll, UV_READABLE, on_knock);
}

int http_listen(struct http *http, int socket, error *err)
{
    auto_fd fd = socket;
    if (http->listener_count == LISTENERS_MAX)
        return fail(err, ERR_BAD_REQUEST, "more than %d listening sockets", LISTENERS_MAX);
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

/* --- open and close --------------------------------------------------------------------------- */

PRINTF(2, 0) static void on_log(void *context, const char *format, va_list values)
{
    (void) context;
    char text[256];
    (void) vsnprintf(text, sizeof text, format, values);
    text[strcspn(text, "\n")] = '\0';
    service_log_debug(LOGGED_HTTP_LOG, "text", text);
}

static int start_mhd(struct http *http, error *err)
{
    unsigned all = open_files_for_connections(open_files_raise());
    http->connections_max = all < BUSY_MAX ? all : BUSY_MAX;
    http->resting_max = all - http->connections_max;
    /* Not MHD_OPTION_STRICT_FOR_CLIENT, which answers a request without Host itself, and with two
     * heads (0.9.75); we check for Host. */
    http->mhd = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG |
            MHD_ALLOW_UPGRADE,
        0, NULL, NULL, take_request, http, MHD_OPTION_EXTERNAL_LOGGER, on_log, http,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned) OPEN_FILES_CONNECTIONS_MAX + CLOSING_MAX,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t) CONNECTION_BYTES, MHD_OPTION_NOTIFY_COMPLETED,
        request_completed, http, MHD_OPTION_NOTIFY_CONNECTION, on_connection, http,
        MHD_OPTION_URI_LOG_CALLBACK, look_at_target, http, MHD_OPTION_UNESCAPE_CALLBACK,
        unescape_url, http, MHD_OPTION_END);
    return !http->mhd ? fail_os(err, "start libmicrohttpd") : 0;
}

int http_open(uv_loop_t *loop, const struct http_settings *settings, struct http **ret_http,
              error *err)
{
    struct http *http = calloc(1, sizeof *http);
    if (!http)
        return fail(err, ERR_SYSTEM, "no memory for HTTP");
    http->settings = *settings;
    http->loop = loop;
    http->began_ms = now_ms();
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
    http->poll.data = http->timer.data = http->sweep.data = http->prepare.data = http->check.data =
        http->idle.data = http->alarm.data = http;
    (void) uv_timer_init(loop, &http->timer);
    (void) uv_timer_init(loop, &http->sweep);
    (void) uv_timer_init(loop, &http->alarm);
    (void) uv_prepare_init(loop, &http->prepare);
    (void) uv_check_init(loop, &http->check);
    (void) uv_idle_init(loop, &http->idle);
    (void) uv_poll_start(&http->poll, UV_READABLE, on_ready);
    (void) uv_prepare_start(&http->prepare, on_prepare);
    (void) uv_check_start(&http->check, on_check);
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
    http->has_stopped = true;
    stop_accepting(http);
}

unsigned http_connection_count(const struct http *http)
{
    return http->connection_count;
}

int64_t http_used_ms(const struct http *http)
{
    return http->used_ms;
}

int64_t http_began_ms(const struct http *http)
{
    return http->began_ms;
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
    http->is_closing = http->has_stopped = true;
    for (struct connection *connection = http->connections; connection;
         connection = connection->next)
        if (connection->exchange) {
            exchange_stop_watching(connection->exchange);
            exchange_wake(connection->exchange);
            exchange_close_upgraded(connection->exchange);
        }
    (void) MHD_run(http->mhd); /* no connection may be suspended when libmicrohttpd stops */
    uv_handle_t *handles[HANDLES] = { (uv_handle_t *) &http->poll,  (uv_handle_t *) &http->timer,
                                      (uv_handle_t *) &http->sweep, (uv_handle_t *) &http->prepare,
                                      (uv_handle_t *) &http->check, (uv_handle_t *) &http->idle,
                                      (uv_handle_t *) &http->alarm };
    http->handles = (unsigned) (HANDLES + http->listener_count);
    for (size_t i = 0; i < http->listener_count; i++)
        uv_close((uv_handle_t *) &http->listeners[i].poll, on_listener_closed);
    for (size_t i = 0; i < HANDLES; i++)
        uv_close(handles[i], on_handle_closed);
}
