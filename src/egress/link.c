/* link.c - packets from and to gloveboxd. It is trusted to choose the rules; its packets are
 * checked all the same, since a bug would open a hole here. */
#include "egress/egress.h"

#include "base/packet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { RECORDS_MAX = 512 /* of one channel; further ones are only counted */ };

static bool send_record(const struct egress *egress, uint32_t kind,
                        const struct egress_record *record)
{
    error err;
    return packet_send(egress->daemon, kind, record, sizeof *record, NULL, 0, &err) == 0;
}

void link_tell(struct channel *channel, const struct egress_record *record)
{
    if (channel->records < RECORDS_MAX && send_record(channel->egress, EGRESS_RECORD, record))
        channel->records++;
    else
        channel->lost++;
}

/* So that gloveboxd knows of a connection whose record is lost because this program ends. */
void link_tell_begun(struct channel *channel, struct egress_record *record)
{
    if (channel->begun++ < RECORDS_MAX)
        record->is_begun = send_record(channel->egress, EGRESS_BEGUN, record);
}

/* Without gloveboxd no connection would be recorded, so the program exits. */
static void leave(const error *err)
{
    if (err->code != ERR_NONE)
        (void) fprintf(stderr, "glovebox-egress: %s\n", err->text);
    _exit(err->code == ERR_NONE ? 0 : 1);
}

/* Sends a message for which gloveboxd waits. Tries for a while if the kernel has no memory; then
 * the program exits, and the next one answers that it does not know the channel. */
static void send_surely(struct egress *egress, uint32_t kind, const void *body, size_t size)
{
    enum { TRIES = 20, PAUSE_MS = 10 };
    error err;
    int result = -1;
    (void) fcntl(egress->daemon, F_SETFL, 0);
    for (unsigned i = 0; result < 0 && i < TRIES; i++) {
        result = packet_send(egress->daemon, kind, body, size, NULL, 0, &err);
        if (result < 0 && err.os == EPIPE)
            break; /* gloveboxd has ended: daemon_speaks() sees that */
        if (result < 0)
            (void) poll(NULL, 0, PAUSE_MS);
    }
    (void) fcntl(egress->daemon, F_SETFL, O_NONBLOCK);
    if (result < 0 && err.os != EPIPE)
        leave(&err);
}

static void tell_end(struct egress *egress, uint32_t kind, uint32_t channel, uint32_t lost)
{
    const struct egress_closed closed = { .channel = channel, .lost = lost };
    send_surely(egress, kind, &closed, sizeof closed);
}

void link_tell_closed(struct channel *channel)
{
    tell_end(channel->egress, EGRESS_CLOSED, channel->id, channel->lost);
}

void link_tell_authority(struct channel *channel)
{
    const char *text = tls_authority_text(channel->authority);
    size_t whole = strlen(text);
    for (size_t from = 0; from < whole; from += EGRESS_PIECE) {
        size_t size = whole - from < EGRESS_PIECE ? whole - from : EGRESS_PIECE;
        struct egress_authority piece = { .channel = channel->id,
                                          .from = (uint16_t) from,
                                          .size = (uint16_t) size,
                                          .whole = (uint16_t) whole };
        memcpy(piece.text, text + from, size);
        send_surely(channel->egress, EGRESS_AUTHORITY, &piece, sizeof piece);
    }
}

/* --- EGRESS_TELL: ends of connections before it may still wait as events. All of them have been
 * handled three turns of the loop later: the first turn may have begun before they came, and the
 * end of intercepted TLS reaches its connection by a socket pair, one turn later. */

enum { TELL_TURNS = 3 };

static void on_turn(uv_check_t *turn)
{
    struct egress *egress = turn->data;
    bool is_awaited = false;
    for (struct channel *channel = egress->channels; channel; channel = channel->next) {
        if (channel->tell_turns == 0)
            continue;
        if (--channel->tell_turns > 0) {
            is_awaited = true;
            continue;
        }
        tell_end(egress, EGRESS_TOLD, channel->id, channel->lost);
        /* a caller that asks from time to time gets as many records again */
        channel->records = channel->lost = channel->begun = 0;
    }
    if (!is_awaited) {
        (void) uv_check_stop(&egress->turn);
        (void) uv_idle_stop(&egress->no_rest);
    }
}

static void not_at_rest(uv_idle_t *idle)
{
    (void) idle; /* an active idle handle keeps the loop from waiting */
}

static void forget_coming(struct egress *egress)
{
    egress->coming.count = egress->coming.endpoint_count = 0;
}

static void coming_is_for(struct egress *egress, uint32_t channel)
{
    if (channel != egress->coming_for)
        forget_coming(egress);
    egress->coming_for = channel;
}

static int take_rule(struct egress *egress, struct packet *packet, error *err)
{
    struct egress_rule rule;
    if (packet->size != sizeof rule || packet->fds != 0)
        return fail(err, ERR_PROTOCOL, "a rule is malformed");
    memcpy(&rule, packet->body, sizeof rule);
    coming_is_for(egress, rule.channel);
    return rules_add(&egress->coming, &rule, err);
}

static int take_endpoint(struct egress *egress, struct packet *packet, error *err)
{
    struct egress_endpoint endpoint;
    if (packet->size != sizeof endpoint || packet->fds != 0)
        return fail(err, ERR_PROTOCOL, "an endpoint is malformed");
    memcpy(&endpoint, packet->body, sizeof endpoint);
    coming_is_for(egress, endpoint.channel);
    return rules_add_endpoint(&egress->coming, &endpoint, err);
}

static int take_open(struct egress *egress, struct packet *packet, error *err)
{
    struct egress_open terms;
    if (packet->size != sizeof terms)
        return fail(err, ERR_PROTOCOL, "the terms of a channel are malformed");
    memcpy(&terms, packet->body, sizeof terms);
    if (terms.port_count > EGRESS_PORTS_MAX || packet->fds != 3U + terms.port_count ||
        channel_find(egress, terms.channel))
        return fail(err, ERR_PROTOCOL, "channel %u has %u sockets", terms.channel, packet->fds);
    if (terms.rules != egress->coming.count || terms.endpoints != egress->coming.endpoint_count ||
        terms.channel != egress->coming_for) {
        forget_coming(egress); /* an earlier glovebox-egress got its rules, and has ended */
        tell_end(egress, EGRESS_CLOSED, terms.channel, 0);
        return 0;
    }
    int sockets[EGRESS_LISTENERS_MAX];
    for (unsigned i = 0; i < packet->fds; i++)
        sockets[i] = packet_take_fd(packet, i);
    int done = channel_open(egress, &terms, &egress->coming, sockets, err) ? 0 : -1;
    forget_coming(egress);
    return done;
}

static int take_close(struct egress *egress, struct packet *packet, error *err)
{
    struct egress_channel named;
    if (packet->size != sizeof named || packet->fds != 0)
        return fail(err, ERR_PROTOCOL, "the end of a channel is malformed");
    memcpy(&named, packet->body, sizeof named);
    struct channel *channel = channel_find(egress, named.channel);
    if (channel)
        channel_close(channel);
    else
        tell_end(egress, EGRESS_CLOSED, named.channel, 0); /* of an earlier glovebox-egress */
    return 0;
}

static int take_tell(struct egress *egress, struct packet *packet, error *err)
{
    struct egress_channel named;
    if (packet->size != sizeof named || packet->fds != 0)
        return fail(err, ERR_PROTOCOL, "a question about a channel is malformed");
    memcpy(&named, packet->body, sizeof named);
    struct channel *channel = channel_find(egress, named.channel);
    if (!channel)
        return 0; /* it ended with an earlier glovebox-egress, which gloveboxd knows */
    channel->tell_turns = TELL_TURNS;
    (void) uv_check_start(&egress->turn, on_turn);
    (void) uv_idle_start(&egress->no_rest, not_at_rest);
    return 0;
}

static int take_packet(struct egress *egress, struct packet *packet, error *err)
{
    if (packet->kind == EGRESS_RULE)
        return take_rule(egress, packet, err);
    if (packet->kind == EGRESS_ENDPOINT)
        return take_endpoint(egress, packet, err);
    if (packet->kind == EGRESS_OPEN)
        return take_open(egress, packet, err);
    if (packet->kind == EGRESS_CLOSE)
        return take_close(egress, packet, err);
    if (packet->kind == EGRESS_TELL)
        return take_tell(egress, packet, err);
    return fail(err, ERR_PROTOCOL, "message %u does not exist", packet->kind);
}

static void daemon_speaks(uv_poll_t *poll, int status, int events)
{
    (void) events;
    struct egress *egress = poll->data;
    for (unsigned i = 0; i < 64; i++) {
        struct packet packet;
        error err = { 0 };
        int came = status < 0 ? PACKET_CLOSED : packet_receive(egress->daemon, &packet, &err);
        if (came == PACKET_NONE)
            return;
        if (came != PACKET_CAME)
            leave(&err);
        int done = take_packet(egress, &packet, &err);
        packet_done(&packet);
        if (done < 0)
            leave(&err);
    }
}

int link_open(struct egress *egress, int socket, error *err)
{
    egress->daemon = socket;
    if (fcntl(socket, F_SETFL, O_NONBLOCK) < 0)
        return fail_os(err, "use the socket to gloveboxd");
    struct egress_hello hello = { .version = EGRESS_VERSION };
    if (packet_send(socket, EGRESS_HELLO, &hello, sizeof hello, NULL, 0, err) < 0)
        return -1;
    egress->daemon_poll.data = egress->turn.data = egress;
    (void) uv_check_init(&egress->loop, &egress->turn);
    (void) uv_idle_init(&egress->loop, &egress->no_rest);
    if (uv_poll_init(&egress->loop, &egress->daemon_poll, socket) < 0 ||
        uv_poll_start(&egress->daemon_poll, UV_READABLE | UV_DISCONNECT, daemon_speaks) < 0)
        return fail(err, ERR_SYSTEM, "watch the socket to gloveboxd");
    return 0;
}
