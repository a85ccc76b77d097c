/* connection.c - the beginning and the end of a connection, and its callbacks of the event loop.
 *
 * Unknown protocols are refused, refusals are answered in the protocol of the client, and every end
 * is recorded. No connection is made before the name, the rule and the address are checked, and
 * then only to that address. */
#include "egress/connection.h"

#include "base/clock.h"

#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    LINGERING_MAX = 64, /* connections over the limit that get an answer; others are just closed */
    FEW = 32,           /* a channel with fewer connections may use the reserve: has_room() */
};

void connection_handle_closed(uv_handle_t *handle)
{
    struct connection *connection = handle->data;
    if (--connection->handles > 0)
        return;
    (void) close(connection->inner);
    channel_handle_closed(connection->channel);
    free(connection);
}

void connection_tell(struct connection *connection, enum egress_reason reason)
{
    struct egress_record *record = &connection->record;
    const struct exchange *exchange = connection->outer ? connection->outer->exchange : NULL;
    if (exchange) {
        exchange_address(exchange, record->address);
        record->scrubbed = (uint32_t) exchange_scrubbed(exchange);
        if (reason == EGRESS_ALLOWED)
            reason = exchange_failure(exchange);
    }
    record->reason = (uint16_t) reason;
    record->label = connection->rule ? connection->rule->label : EGRESS_NO_LABEL;
    record->took_ms = (uint32_t) ((uv_hrtime() / 1000 - connection->began_us) / 1000);
    link_tell(connection->channel, record);
}

void connection_tell_begun(struct connection *connection)
{
    connection->record.label = connection->rule->label;
    link_tell_begun(connection->channel, &connection->record);
}

void connection_end(struct connection *connection, enum egress_reason reason)
{
    if (connection->state == OVER)
        return;
    bool is_told = connection->state == LINGERING || connection->state == IN_QUESTION;
    connection->state = OVER;
    resolver_forget(connection->lookup);
    if (!is_told)
        connection_tell(connection, reason);
    *connection->place = connection->next;
    if (connection->next)
        connection->next->place = connection->place;
    connection->channel->connections--;
    connection->channel->egress->connections--;
    splice_close(&connection->up);
    splice_close(&connection->down);
    free(connection->head);
    connection->head = NULL;
    uv_close((uv_handle_t *) connection->inner_poll, connection_handle_closed);
    uv_close((uv_handle_t *) &connection->timer, connection_handle_closed);
    connection_drop_outer(connection);
    tls_intercept_drop(connection->tls_intercept);
    connection->tls_intercept = NULL;
}

void connection_inner_is_ready(uv_poll_t *poll, int status, int events)
{
    struct connection *connection = poll->data;
    if (connection->state == OVER)
        return;
    (void) events;
    if (status < 0)
        connection_end(connection, EGRESS_ALLOWED);
    else if (connection->state == RELAYING)
        connection_relay(connection);
    else if (connection->state == LINGERING)
        connection_drain(connection);
    else if (connection->state <= IN_QUESTION)
        connection_read(connection);
}

void connection_time_is_up(uv_timer_t *timer)
{
    struct connection *connection = timer->data;
    if (connection->state == CONNECTING) {
        connection_drop_outer(connection);
        connection_dial_next(connection);
    } else if (connection->state == RESOLVING) {
        resolver_forget(connection->lookup);
        connection->lookup = NULL;
        connection_refuse(connection, EGRESS_NOT_FOUND);
    } else if (connection->state == RELAYING)
        connection_relayed_long_enough(connection);
    else if (connection->state == IN_REQUEST || connection->state == IN_HELLO)
        connection_refuse(connection, EGRESS_TOO_SLOW);
    else if (connection->state == LINGERING && connection->tls_intercept &&
             tls_intercept_is_moving(connection->tls_intercept))
        connection_go_on_lingering(connection);
    else
        connection_end(connection, EGRESS_TOO_SLOW);
}

static struct connection *make(struct channel *channel, int socket)
{
    struct connection *connection = calloc(1, sizeof *connection);
    unsigned char *head = connection ? malloc(HTTP_HEAD_MAX) : NULL;
    if (!head || uv_poll_init(&channel->egress->loop, connection->inner_polls, socket) < 0) {
        free(head);
        free(connection);
        return NULL;
    }
    (void) uv_timer_init(&channel->egress->loop, &connection->timer);
    connection->channel = channel;
    connection->inner = socket;
    connection->head = head;
    connection->handles = 2;
    connection->inner_poll = &connection->inner_polls[0];
    connection->inner_polls[0].data = connection->timer.data = connection;
    connection->up.pipe[0] = connection->up.pipe[1] = -1;
    connection->down.pipe[0] = connection->down.pipe[1] = -1;
    connection->began_us = uv_hrtime() / 1000;
    connection->record = (struct egress_record){ .channel = channel->id,
                                                 .route = EGRESS_BY_NAME,
                                                 .began_ms = (uint64_t) wall_clock_ms() };
    connection->next = channel->first;
    connection->place = &channel->first;
    if (channel->first)
        channel->first->place = &connection->next;
    channel->first = connection;
    channel->connections++;
    channel->egress->connections++;
    channel->open_handles++;
    return connection;
}

/* The last quarter of all connections is kept for channels with few: none can use up all. */
static bool has_room(const struct channel *channel)
{
    const struct egress *egress = channel->egress;
    unsigned reserve = channel->connections < FEW ? 0 : egress->connections_max / 4;
    return channel->connections < channel->terms.connections_max + LINGERING_MAX &&
           egress->connections + reserve < egress->connections_max;
}

void connection_accept(struct listener *listener)
{
    struct channel *channel = listener->channel;
    int one = 1;
    for (unsigned i = 0; i < 16; i++) {
        int accepted = accept4(listener->socket, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (accepted < 0)
            return;
        (void) setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        splice_keeps_to_host(accepted);
        struct connection *connection = has_room(channel) ? make(channel, accepted) : NULL;
        if (!connection) {
            (void) close(accepted);
            channel->lost++;
            continue;
        }
        (void) uv_timer_start(&connection->timer, connection_time_is_up, HEAD_MS, 0);
        (void) uv_poll_start(connection->inner_poll, UV_READABLE, connection_inner_is_ready);
        if (channel->connections > channel->terms.connections_max) {
            connection->record.port = listener->port;
            connection_refuse(connection, EGRESS_TOO_MANY);
        } else
            connection_begin(connection, listener);
    }
}
