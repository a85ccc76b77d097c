/* port_relay.c - copies bytes while there is room: neither side can make the daemon buffer more
 * than a link's window. */
#include "doors/http/port_relay.h"

#include "doors/http/http.h"
#include "engine/service/service_observe.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

static void on_poll_closed(uv_handle_t *handle)
{
    free(handle);
}

static void hang_up(struct port_relay *relay)
{
    uv_poll_t *poll = relay->poll;
    if (!poll)
        return;
    relay->poll = NULL;
    (void) uv_poll_stop(poll);
    poll->data = NULL;
    uv_close((uv_handle_t *) poll, on_poll_closed);
    exchange_downgrade(relay->exchange);
}

static bool receive(struct port_relay *relay)
{
    static char block[16384];
    ssize_t got = recv(relay->socket, block, sizeof block, MSG_DONTWAIT);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    if (got == 0) {
        relay->peer_ended = true;
        port_link_end_input(relay->link);
    } else {
        port_link_give(relay->link, block, (size_t) got);
    }
    return true;
}

static bool transmit(struct port_relay *relay)
{
    size_t waiting;
    const char *in = port_link_waiting(relay->link, &waiting);
    if (waiting == 0)
        return true;
    ssize_t sent = send(relay->socket, in, waiting, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0)
        return errno == EAGAIN || errno == EINTR;
    port_link_take(relay->link, (size_t) sent);
    return true;
}

static void pass_on(struct port_relay *relay);

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct port_relay *relay = poll->data;
    if (!relay)
        return;
    (void) service_work_enter(WORK_PORT, NULL);
    if (status < 0 || (events & UV_PRIORITIZED) ||
        ((events & UV_READABLE) && !relay->peer_ended && !receive(relay))) {
        hang_up(relay);
        return;
    }
    pass_on(relay);
}

/* Sends the bytes that have come, and watches for what can be done next. UV_DISCONNECT would be
 * reported again and again for a peer that has only stopped sending; UV_PRIORITIZED is reported
 * only when it has closed the connection. */
static void pass_on(struct port_relay *relay)
{
    bool went_well = transmit(relay);
    size_t left;
    (void) port_link_waiting(relay->link, &left);
    if (!went_well || (port_link_has_ended(relay->link) && left == 0)) {
        hang_up(relay);
        return;
    }
    int wanted = left > 0 ? UV_WRITABLE : 0;
    if (!relay->peer_ended && port_link_has_room(relay->link))
        wanted |= UV_READABLE;
    (void) uv_poll_start(relay->poll, wanted ? wanted : UV_PRIORITIZED, on_ready);
}

static void opened(struct exchange *exchange, int socket, const char *early, size_t early_size)
{
    struct port_relay *relay = exchange->user;
    relay->socket = socket;
    relay->poll = calloc(1, sizeof *relay->poll);
    if (!relay->poll || uv_poll_init(exchange_loop(exchange), relay->poll, socket) < 0) {
        free(relay->poll);
        relay->poll = NULL;
        exchange_downgrade(exchange);
        return;
    }
    relay->poll->data = relay;
    port_link_give(relay->link, early, early_size);
    pass_on(relay);
}

static void closing(struct exchange *exchange)
{
    hang_up(exchange->user);
}

void port_relay_begin(struct port_relay *relay, const char *protocol)
{
    static const struct upgrade upgrade = { opened, closing };
    exchange_upgrade(relay->exchange, protocol, &upgrade);
}

bool port_relay_woken(struct port_relay *relay)
{
    if (!relay->poll)
        return false;
    pass_on(relay);
    return true;
}
