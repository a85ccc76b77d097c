/* relay.c - copies bytes in both directions when the outer connection is open. */
#include "egress/connection.h"

#include "policy/network_policy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* The reason to refuse with if the upstream of an endpoint failed before it sent anything. */
static enum egress_reason endpoint_refusal(const struct connection *connection)
{
    const struct exchange *exchange = connection->outer->exchange;
    return exchange && connection->record.received == 0 ? exchange_failure(exchange)
                                                        : EGRESS_ALLOWED;
}

/* Reads the status of the server's answer, "HTTP/1.1 200", by MSG_PEEK. Returns false while nothing
 * has come, so that no byte is passed on before. */
static bool note_status(struct connection *connection)
{
    char first[13] = "";
    if (!connection->is_http || connection->has_status)
        return true;
    ssize_t got = recv(connection->outer->socket, first, sizeof first - 1, MSG_PEEK | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got == sizeof first - 1 && strncmp(first, "HTTP/1.", 7) == 0)
        connection->record.status = (uint16_t) strtoul(first + 9, NULL, 10);
    connection->has_status = true;
    return true;
}

static void watch_both(struct connection *connection)
{
    const struct splice *up = &connection->up, *down = &connection->down;
    int inner =
        (splice_wants_read(up) ? UV_READABLE : 0) | (splice_wants_write(down) ? UV_WRITABLE : 0);
    int outer =
        (splice_wants_read(down) ? UV_READABLE : 0) | (splice_wants_write(up) ? UV_WRITABLE : 0);
    if (inner)
        (void) uv_poll_start(connection->inner_poll, inner, connection_inner_is_ready);
    else
        (void) uv_poll_stop(connection->inner_poll);
    if (outer)
        (void) uv_poll_start(&connection->outer->poll, outer, connection_outer_is_ready);
    else
        (void) uv_poll_stop(&connection->outer->poll);
}

/* Copies one direction, up to the channel's limit. Returns false if that is used up. */
static bool pump(struct splice *flow, uint64_t *used, uint64_t max, uint64_t *counted)
{
    uint64_t taken;
    splice_pump(flow, max > *used ? max - *used : 0, &taken);
    *used += taken;
    *counted += taken;
    return *used < max || !splice_wants_read(flow);
}

/* A connection to a host may last as long as its policy says. Exchanges are few and shared by all
 * sandboxes, so one ends when it has been idle. */
static uint32_t patience_ms(const struct connection *connection)
{
    const struct egress_endpoint *endpoint =
        rules_endpoint(&connection->channel->rules, connection->rule);
    uint32_t duration_ms = connection->channel->terms.duration_ms;
    if (duration_ms == 0 && connection->tls_intercept)
        return ENDPOINT_IDLE_MS;
    return duration_ms > 0 || !endpoint ? duration_ms : endpoint->idle_ms;
}

static void await_end(struct connection *connection)
{
    uint32_t max = patience_ms(connection);
    if (max > 0)
        (void) uv_timer_start(&connection->timer, connection_time_is_up, max, 0);
    else
        (void) uv_timer_stop(&connection->timer);
}

void connection_relayed_long_enough(struct connection *connection)
{
    if (connection->channel->terms.duration_ms > 0)
        connection_end(connection, EGRESS_TOO_LONG);
    else if (connection->record.received == 0)
        connection_refuse(connection, EGRESS_IDLE);
    else
        connection_end(connection, EGRESS_IDLE);
}

/* An incomplete body gets no answer. A malformed one gets one, unless an answer has begun. */
static void break_off(struct connection *connection)
{
    if (connection->up.is_cut)
        connection_end(connection, EGRESS_ALLOWED);
    else if (connection->record.received == 0)
        connection_refuse(connection, EGRESS_BAD_REQUEST);
    else
        connection_end(connection, EGRESS_BAD_REQUEST);
}

void connection_relay(struct connection *connection)
{
    struct channel *channel = connection->channel;
    struct egress_record *record = &connection->record;
    uint64_t before = record->sent + record->received;
    enum egress_reason refusal = endpoint_refusal(connection);
    if (refusal != EGRESS_ALLOWED) {
        connection_refuse(connection, refusal);
        return;
    }
    bool may_send = pump(&connection->up, &channel->sent, channel->terms.sent_max, &record->sent);
    bool may_receive =
        !note_status(connection) ||
        pump(&connection->down, &channel->received, channel->terms.received_max, &record->received);
    if (connection->outer->exchange && record->sent + record->received > before)
        await_end(connection);
    if (!may_send)
        connection_end(connection, EGRESS_SENT_TOO_MUCH);
    else if (!may_receive)
        connection_end(connection, EGRESS_RECEIVED_TOO_MUCH);
    else if (connection->down.fails)
        connection_end(connection, EGRESS_ALLOWED);
    else if (connection->up.is_wrong || connection->up.is_cut)
        break_off(connection);
    else if (connection->down.is_done &&
             (connection->is_http || connection->up.is_done || connection->up.fails)) {
        connection_tell(connection, EGRESS_ALLOWED);
        connection_linger(connection);
    } else
        watch_both(connection);
}

/* Sends what has been read so far: the head, and the first bytes of the body. */
static int put_head(struct connection *connection, enum splice_body body, uint64_t left)
{
    struct splice *up = &connection->up;
    size_t head = connection->is_http ? connection->body_from : connection->head_size;
    up->body = body;
    up->left = left;
    if (connection->head_size > HTTP_HEAD_MAX / 2 &&
        fcntl(up->pipe[1], F_SETPIPE_SZ, 4 * HTTP_HEAD_MAX) < 0)
        return -1;
    if (splice_put(up, connection->head, head) < 0)
        return -1;
    return splice_put_body(up, (const char *) connection->head + head,
                           connection->head_size - head);
}

void connection_begin_relay(struct connection *connection)
{
    enum splice_body body = connection->up.body; /* decided with the request */
    uint64_t left = connection->up.left;
    connection->up.pipe[0] = connection->up.pipe[1] = -1;
    connection->state = RELAYING;
    if (splice_open(&connection->up, connection->inner, connection->outer->socket) < 0 ||
        splice_open(&connection->down, connection->outer->socket, connection->inner) < 0 ||
        put_head(connection, body, left) < 0) {
        connection_refuse(connection, EGRESS_BAD_REQUEST);
        return;
    }
    connection->channel->sent += connection->head_size;
    connection->record.sent += connection->head_size;
    free(connection->head);
    connection->head = NULL;
    await_end(connection);
    connection_tell_begun(connection);
    connection_relay(connection);
}
