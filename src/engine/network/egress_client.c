/* egress_client.c - see egress_client.h. glovebox-egress may end and be restarted while this daemon
 * runs: its second hello on the same socket ends all open routes, and new ones can be opened. */
#include "engine/network/egress_client.h"

#include "base/packet.h"
#include "base/table.h"
#include "engine/network/egress_internal.h"
#include "engine/observe/log.h"
#include "engine/observe/loop_monitor.h"
#include "engine/observe/metrics.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECORDS_MAX = 256, PACKETS_A_TURN = 64 };

static const char *const reasons[EGRESS_REASONS] = {
    [EGRESS_ALLOWED] = "allowed",
#define REASON(name, status, text) [EGRESS_##name] = (text),
#include "contract/egress_reasons.def"
};

const char *network_reason_text(unsigned reason)
{
    return reason < EGRESS_REASONS ? reasons[reason] : "refused";
}

bool network_is_refused(const struct egress_record *record)
{
    static const short statuses[EGRESS_REASONS] = {
#define REASON(name, status, text) [EGRESS_##name] = (status),
#include "contract/egress_reasons.def"
    };
    switch (record->reason) {
    case EGRESS_ALLOWED:
        return false;
    case EGRESS_SENT_TOO_MUCH:
    case EGRESS_RECEIVED_TOO_MUCH:
    case EGRESS_TOO_LONG:
        return record->sent == 0 && record->received == 0; /* else it was cut off */
    default:
        return record->reason >= EGRESS_REASONS || statuses[record->reason] < 500;
    }
}

static void lose_all(struct network *network, const char *why)
{
    while (network->egress_routes)
        egress_route_lose(network->egress_routes, why);
}

static struct egress_route *find(const struct network *network, uint32_t channel)
{
    struct egress_route *route = network->egress_routes;
    while (route && route->channel != channel)
        route = route->next;
    return route;
}

static int take_hello(struct network *network, const struct packet *packet, error *err)
{
    struct egress_hello hello;
    memcpy(&hello, packet->body, sizeof hello);
    if (hello.version != EGRESS_VERSION)
        return fail(err, ERR_PROTOCOL, "glovebox-egress has protocol version %u, gloveboxd has %d",
                    hello.version, EGRESS_VERSION);
    if (!network->has_greeted) { /* it now reads what was sent while it started */
        network->has_greeted = true;
        return 0;
    }
    if (network->is_up)
        log_event(EGRESS_RESTARTED, TEXT("cause", "it had ended"));
    network->is_up = true;
    for (struct egress_route *route = network->egress_routes, *next; route; route = next) {
        next = route->next;
        egress_route_send_close(route); /* it may have been opened after the restart */
        if (egress_route_is_reopened(route))
            egress_route_shut(route,
                              "glovebox-egress ended, and with it every connection; connect again");
        else
            egress_route_lose(route,
                              "glovebox-egress ended, and with it every connection; run it again");
    }
    egress_routes_reopen(network);
    return 0;
}

static bool is_ended(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

/* Counts a record in the metrics, and logs it. */
static void note_record(const struct egress_record *record)
{
    metric_add(METRIC_NETWORK_CONNECTIONS, record->reason, 1);
    metric_add(METRIC_NETWORK_BYTES, 0, record->sent);
    metric_add(METRIC_NETWORK_BYTES, 1, record->received);
    log_event(NETWORK_CONNECTION, COUNT("channel", record->channel), TEXT("host", record->name),
              COUNT("port", record->port), TEXT("reason", network_reason_text(record->reason)),
              COUNT("status", record->status), COUNT("sent", record->sent),
              COUNT("received", record->received), COUNT("took_ms", record->took_ms));
    if (record->scrubbed > 0)
        log_event(NETWORK_SECRET_RETURNED, TEXT("endpoint", record->name),
                  COUNT("times", record->scrubbed));
}

static int read_record(const struct packet *packet, struct egress_record *record, error *err)
{
    memcpy(record, packet->body, sizeof *record);
    if (record->reason < EGRESS_REASONS && record->route < EGRESS_ENTRIES &&
        is_ended(record->name, sizeof record->name) &&
        is_ended(record->path, sizeof record->path) &&
        is_ended(record->method, sizeof record->method))
        return 0;
    return fail(err, ERR_PROTOCOL, "glovebox-egress sent a record that is malformed");
}

static int take_begun(struct network *network, const struct packet *packet, error *err)
{
    struct egress_record record;
    if (read_record(packet, &record, err) < 0)
        return -1;
    struct egress_route *route = find(network, record.channel);
    if (!route)
        return 0;
    route->open++;
    if (network->traffic->listeners)
        traffic_note(network->traffic, &route->source, &record, false);
    return 0;
}

static int take_record(struct network *network, const struct packet *packet, error *err)
{
    struct egress_record record;
    if (read_record(packet, &record, err) < 0)
        return -1;
    note_record(&record);
    struct egress_route *route = find(network, record.channel);
    if (!route)
        return 0; /* of a route that was lost */
    traffic_note(network->traffic, &route->source, &record, true);
    route->open -= record.is_begun != 0 && route->open > 0;
    route->used.sent += record.sent;
    route->used.received += record.received;
    route->used.connections++;
    route->used.refused += network_is_refused(&record);
    if (route->count == route->room && route->count < RECORDS_MAX) {
        size_t room = route->room > 0 ? route->room * 2 : 8;
        void *larger = realloc(route->records, room * sizeof record);
        if (larger) {
            route->records = larger;
            route->room = room;
        }
    }
    if (route->count == route->room)
        route->unlisted++;
    else
        route->records[route->count++] = record;
    return 0;
}

static int take_closed(struct network *network, const struct packet *packet, error *err)
{
    struct egress_closed closed;
    memcpy(&closed, packet->body, sizeof closed);
    struct egress_route *route = find(network, closed.channel);
    (void) err;
    if (!route)
        return 0;
    route->unlisted += closed.lost;
    if (egress_route_is_reopened(route)) { /* opened during the restart of glovebox-egress */
        egress_route_shut(route, NULL);
        egress_routes_reopen_later(network);
        return 0;
    }
    if (!route->is_ending)
        route->failure = "glovebox-egress could not open egress; run it again";
    egress_route_unlink(route);
    egress_route_conclude(route);
    return 0;
}

static int take_told(struct network *network, const struct packet *packet, error *err)
{
    struct egress_closed told;
    memcpy(&told, packet->body, sizeof told);
    struct egress_route *route = find(network, told.channel);
    (void) err;
    if (!route || route->asked == 0)
        return 0;
    route->unlisted += told.lost;
    egress_route_answer(route, route->asked);
    if (route->questions > 0 && route->asked == 0)
        egress_route_send_question(route);
    return 0;
}

static int take_authority(struct network *network, const struct packet *packet, error *err)
{
    struct egress_authority piece;
    memcpy(&piece, packet->body, sizeof piece);
    struct egress_route *route = find(network, piece.channel);
    if (route && egress_route_hear_authority(route, &piece) < 0)
        return fail(err, ERR_PROTOCOL, "glovebox-egress sent a certificate that is malformed");
    return 0;
}

static const struct {
    size_t size;
    int (*take)(struct network *, const struct packet *, error *);
} hearings[] = {
    [EGRESS_HELLO] = { sizeof(struct egress_hello), take_hello },
    [EGRESS_RECORD] = { sizeof(struct egress_record), take_record },
    [EGRESS_CLOSED] = { sizeof(struct egress_closed), take_closed },
    [EGRESS_TOLD] = { sizeof(struct egress_closed), take_told },
    [EGRESS_BEGUN] = { sizeof(struct egress_record), take_begun },
    [EGRESS_AUTHORITY] = { sizeof(struct egress_authority), take_authority },
};

static void go_down(struct network *network, const char *why)
{
    log_event(EGRESS_EXITED, TEXT("cause", why));
    network->is_up = false;
    (void) uv_poll_stop(&network->poll);
    lose_all(network, "glovebox-egress has ended and is being restarted; try again in a second");
}

static void on_event(uv_poll_t *poll, int status, int events)
{
    struct network *network = poll->data;
    (void) events;
    (void) loop_enter(CAUSE_NETWORK, NULL);
    for (int turn = 0; turn < PACKETS_A_TURN; turn++) {
        struct packet packet;
        error err = { 0 };
        int came = status < 0 ? PACKET_CLOSED : packet_receive(network->socket, &packet, &err);
        if (came == PACKET_NONE)
            return;
        if (came != PACKET_CAME) {
            go_down(network, came == PACKET_CLOSED ? "it ended" : err.text);
            return;
        }
        int done = -1;
        if (packet.kind < COUNT_OF(hearings) && hearings[packet.kind].take && packet.fds == 0 &&
            packet.size == hearings[packet.kind].size)
            done = hearings[packet.kind].take(network, &packet, &err);
        else
            (void) fail(&err, ERR_PROTOCOL, "message %u is malformed", packet.kind);
        packet_done(&packet);
        if (done < 0) {
            go_down(network, err.text);
            return;
        }
    }
}

int network_open(uv_loop_t *loop, int socket, struct traffic *traffic, struct network **ret_network,
                 error *err)
{
    struct network *network = calloc(1, sizeof *network);
    if (!network)
        return fail(err, ERR_SYSTEM, "no memory for the network");
    network->socket = socket;
    network->traffic = traffic;
    network->is_up = true;
    network->poll.data = network->reopen.data = network;
    if (uv_poll_init(loop, &network->poll, socket) < 0 ||
        uv_poll_start(&network->poll, UV_READABLE, on_event) < 0) {
        free(network);
        return fail(err, ERR_SYSTEM, "watch the socket to glovebox-egress");
    }
    (void) uv_timer_init(loop, &network->reopen);
    uv_unref((uv_handle_t *) &network->poll); /* must not keep the loop alive */
    *ret_network = network;
    return 0;
}

static void on_timer_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_closed(uv_handle_t *handle)
{
    struct network *network = handle->data;
    (void) close(network->socket);
    uv_close((uv_handle_t *) &network->reopen, on_timer_closed);
}

void network_close(struct network *network)
{
    if (!network)
        return;
    lose_all(network, "glovebox ends");
    uv_close((uv_handle_t *) &network->poll, on_closed);
}
