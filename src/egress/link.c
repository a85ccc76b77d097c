/* link.c - packets from and to gloveboxd. It is trusted to choose the rules; what it sends is
 * checked all the same, since a mistake here would be a hole. */
#include "egress/egress.h"

#include "base/packet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { RECORDS_MAX = 512 /* that one channel may cause: who floods is counted, not listed */ };

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

/* For watchers; one that is not reported is not missed. */
void link_tell_begun(struct channel *channel, const struct egress_record *record)
{
    if (channel->egress->is_watched && channel->begun++ < RECORDS_MAX)
        (void) send_record(channel->egress, EGRESS_BEGUN, record);
}

/* Without gloveboxd no connection is accounted for: everything ends. */
static void leave(const error *err)
{
    if (err->code != ERR_NONE)
        (void) fprintf(stderr, "glovebox-egress: %s\n", err->text);
    _exit(err->code == ERR_NONE ? 0 : 1);
}

/* A word that must arrive: gloveboxd waits for it. When the kernel has no memory for it, it is
 * tried for a while; our next life says then that it knows nothing of the channel. */
static void send_surely(struct egress *egress, uint32_t kind, const void *body, size_t size)
{
    enum { TRIES = 20, PAUSE_MS = 10 };
    error err;
    int result = -1;
    (void) fcntl(egress->daemon, F_SETFL, 0);
    for (unsigned i = 0; result < 0 && i < TRIES; i++) {
        result = packet_send(egress->daemon, kind, body, size, NULL, 0, &err);
        if (result < 0 && err.os == EPIPE)
            break; /* its end is heard elsewhere */
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

/* --- EGRESS_TELL: what had ended when it was sent may still lie before us. Three turns of the loop
 * later everything that lay there has been heard: the first may have begun without it, and what
 * ends where TLS is intercepted comes to its connection by a socket, a turn later. */

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
        /* a caller that asks now and then gets as many again */
        channel->records = channel->lost = channel->begun = 0;
    }
    if (!is_awaited) {
        (void) uv_check_stop(&egress->turn);
        (void) uv_idle_stop(&egress->no_rest);
    }
}

static void not_at_rest(uv_idle_t *idle)
{
    (void) idle; /* the loop does not wait while it is active */
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
        forget_coming(egress); /* our predecessor had its rules when it ended */
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
        tell_end(egress, EGRESS_CLOSED, named.channel, 0); /* of another life of this program */
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
        return 0; /* it ended with another life of this program, and the caller has been told so */
    channel->tell_turns = TELL_TURNS;
    (void) uv_check_start(&egress->turn, on_turn);
    (void) uv_idle_start(&egress->no_rest, not_at_rest);
    return 0;
}

static int take_watch(struct egress *egress, struct packet *packet, error *err)
{
    struct egress_watch watch;
    if (packet->size != sizeof watch || packet->fds != 0)
        return fail(err, ERR_PROTOCOL, "the wish to watch is malformed");
    memcpy(&watch, packet->body, sizeof watch);
    egress->is_watched = watch.is_on != 0;
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
    if (packet->kind == EGRESS_WATCH)
        return take_watch(egress, packet, err);
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
