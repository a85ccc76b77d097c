/* tls_connection.c - begins the interception of TLS: from then on the connection is one of plain
 * HTTP over a socket pair, whose other end is the client's TLS (tls_intercept.h). */
#include "egress/connection.h"

/* Replaces the accepted socket, which the interception now has, by the plain one. */
static int change_sockets(struct connection *connection, int plain)
{
    struct egress *egress = connection->channel->egress;
    uv_poll_t *poll = &connection->inner_polls[1];
    connection->inner = plain;
    if (uv_poll_init(&egress->loop, poll, plain) < 0)
        return -1;
    poll->data = connection;
    connection->handles++;
    uv_close((uv_handle_t *) connection->inner_poll, connection_handle_closed);
    connection->inner_poll = poll;
    return 0;
}

void connection_intercept(struct connection *connection)
{
    struct channel *channel = connection->channel;
    const struct tls_intercept_order order = { .authority = channel->authority,
                                               .name = connection->record.name,
                                               .socket = connection->inner,
                                               .greeting = connection->head,
                                               .greeting_size = connection->head_size };
    int plain;
    (void) uv_poll_stop(connection->inner_poll);
    enum egress_reason reason =
        tls_intercept_begin(channel->egress->interceptions, &channel->handshakes, &order, &plain,
                            &connection->tls_intercept);
    if (reason != EGRESS_ALLOWED) {
        connection_refuse(connection, reason);
        return;
    }
    connection->record.is_intercepted = 1;
    connection->head_size = 0;
    connection->state = IN_REQUEST;
    connection->speech = SPEAKS_HTTP;
    if (change_sockets(connection, plain) < 0) {
        connection_end(connection, EGRESS_TOO_MANY);
        return;
    }
    (void) uv_timer_start(&connection->timer, connection_time_is_up, HEAD_MS, 0);
    (void) uv_poll_start(connection->inner_poll, UV_READABLE, connection_inner_is_ready);
}
