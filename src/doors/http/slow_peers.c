/* slow_peers.c - peers that are slow or silent: how long a header or a body may take, how long an
 * answer may stay unread, and which connection is closed to make room for another.
 *
 *     header, body    408, and the connection ends (on_sweep)
 *     silence         libmicrohttpd closes idle connections (http_patience.idle_s)
 *     crowded         the connection that was silent for longest is closed; if none is silent,
 *                     new ones wait in the backlog (make_room) */
#include "doors/http/http_internal.h"
#include "model/errors.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <linux/sockios.h>

enum {
    STREAM_BODY_MS = 3600000, /* for a body that is streamed */
    CROWD = 16,               /* with so few places left each new connection closes a silent one */
    OLD_BODY_MS = 10000,      /* a connection whose body takes longer may be closed too */
    SECOND_MS = 1000,
    KEY_SWEEPS = 10, /* sweeps between two checks of the keys of upgraded connections */
};

/* Since when we wait for bytes of the peer; 0: we do not. */
static int64_t owes_since(const struct connection *connection)
{
    if (connection->since_ms != 0)
        return connection->since_ms;
    const struct exchange *exchange = connection->exchange;
    return exchange && exchange->body_is_open && !exchange->is_waiting ? exchange->began_ms : 0;
}

/* How long we wait for them; 0: without limit. */
static int64_t may_owe_ms(const struct connection *connection)
{
    const struct http_patience *patience = connection->http->settings.patience;
    if (!patience)
        return 0;
    if (connection->since_ms != 0)
        return (int64_t) patience->header_s * SECOND_MS;
    const struct route *route = connection->exchange->route;
    if (route && route->body == BODY_STREAM)
        return STREAM_BODY_MS;
    return (int64_t) patience->body_s * SECOND_MS;
}

static bool owes_too_long(const struct connection *connection, int64_t now)
{
    int64_t since = owes_since(connection), max_ms = since != 0 ? may_owe_ms(connection) : 0;
    return max_ms > 0 && now - since > max_ms;
}

static void cut(struct connection *connection)
{
    connection->is_cut = true; /* do not close it again */
    connection->http->is_woken = true;
    (void) shutdown(connection->fd, SHUT_RDWR);
}

/* libmicrohttpd answers only complete requests, so this is written to the socket directly: no other
 * answer is being sent on a connection whose request is incomplete. */
static void say_too_slow(const struct connection *connection)
{
    const struct exchange *exchange = connection->exchange;
    char body[256], text[512];
    if (connection->since_ms == 0 && exchange && exchange->is_answered)
        return;
    int size = snprintf(
        body, sizeof body,
        "{\"error\":{\"code\":\"%s\",\"message\":\"the %s was incomplete after %lld s; "
        "send it faster\",\"fault\":\"caller\",\"retryable\":true}}\n",
        error_row_of(ERR_TIMEOUT)->json_code, connection->since_ms != 0 ? "header" : "body",
        (long long) (may_owe_ms(connection) / SECOND_MS));
    int length = snprintf(text, sizeof text,
                          "HTTP/1.1 408 Request Timeout\r\nContent-Type: application/json\r\n"
                          "Connection: close\r\nContent-Length: %d\r\n\r\n%s",
                          size, body);
    (void) !send(connection->fd, text, (size_t) length, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* A peer that reads slowly is not stalled; one that reads nothing is. */
static void look_at_reader(struct connection *connection, int64_t now)
{
    const struct exchange *exchange = connection->exchange;
    int unread = 0;
    bool is_owed = exchange && exchange->is_answered && !exchange->is_waiting && !exchange->upgrade;
    if (!is_owed || ioctl(connection->fd, SIOCOUTQ, &unread) < 0)
        unread = 0;
    if (unread == 0 || unread != connection->unread)
        connection->stalled_ms = 0;
    else if (connection->stalled_ms == 0)
        connection->stalled_ms = now;
    connection->unread = unread;
}

/* Closes connections whose header or body takes too long, even if bytes still arrive. */
void on_sweep(uv_timer_t *timer)
{
    struct http *http = timer->data;
    int64_t now = now_ms();
    for (struct connection *connection = http->connections; connection;
         connection = connection->next) {
        look_at_reader(connection, now);
        if (connection->is_cut || !owes_too_long(connection, now))
            continue;
        say_too_slow(connection);
        cut(connection);
    }
    if (++http->sweeps % KEY_SWEEPS == 0)
        close_upgraded_without_key(http);
    if (http->is_full)
        listen_again(http); /* a connection may have become silent */
}

/* Since when bytes should have come or gone, and did not; 0: the connection is active. */
static int64_t silent_since(const struct connection *connection, int64_t now)
{
    int64_t since = owes_since(connection);
    if (connection->is_cut)
        return 0;
    if (since == 0)
        return connection->stalled_ms;
    bool is_young_body = connection->since_ms == 0 && now - since < OLD_BODY_MS;
    return is_young_body ? 0 : since;
}

/* Silent peers must not keep others out: the connection that was silent for longest is closed. */
void make_room(struct http *http)
{
    struct connection *longest = NULL;
    int64_t longest_since = 0, now = now_ms();
    if (!connections_are_used_up(http, CROWD))
        return;
    for (struct connection *connection = http->connections; connection;
         connection = connection->next) {
        int64_t since = silent_since(connection, now);
        if (since != 0 && (!longest || since < longest_since)) {
            longest = connection;
            longest_since = since;
        }
    }
    if (longest)
        cut(longest);
}

void exchange_cut(struct exchange *exchange)
{
    struct connection *connection = connection_of(exchange->connection);
    if (!connection || connection->is_cut)
        return;
    cut(connection);
    if (exchange->is_waiting) {
        exchange->is_gone = true;
        exchange_wake(exchange);
    }
}
