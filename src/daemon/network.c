/* network.c - see network.h. glovebox-egress may end and come back while this daemon lives: its
 * second hello on the same socket ends every way that was open, and new ones can be made again. */
#include "daemon/network.h"

#include "base/packet.h"
#include "base/table.h"
#include "daemon/log.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECORDS_MOST = 256, PACKETS_A_TURN = 64 };

struct way {
    struct network *network; /* NULL once it cannot hear anything more */
    struct way *next;
    uint32_t channel;
    bool is_freed; /* its end is awaited, and nobody wants to know */
    bool is_ending;
    const char *failure;
    way_ended *ended;
    void *context;
    size_t count, room;
    struct egress_record *records;
    uint64_t unlisted;
};

struct network {
    int socket;
    uv_poll_t poll;
    bool is_up; /* it has said hello */
    uint32_t last_channel;
    struct way *ways;
};

static const char *const reasons[EGRESS_REASONS] = {
    [EGRESS_ALLOWED] = "allowed",
#define REASON(name, status, text) [EGRESS_##name] = (text),
#include "contract/egress_reasons.def"
};

const char *network_reason_text(unsigned reason)
{
    return reason < EGRESS_REASONS ? reasons[reason] : "refused";
}

static void unlink_way(struct way *way)
{
    for (struct way **place = &way->network->ways; *place; place = &(*place)->next)
        if (*place == way) {
            *place = way->next;
            break;
        }
    way->network = NULL;
}

static void destroy(struct way *way)
{
    free(way->records);
    free(way);
}

/* It hears nothing more: nobody wants to know, or its owner is told. */
static void conclude(struct way *way)
{
    if (way->is_freed)
        destroy(way);
    else if (way->is_ending)
        way->ended(way->context);
}

static void lose_all(struct network *network, const char *why)
{
    while (network->ways) {
        struct way *way = network->ways;
        network->ways = way->next;
        way->network = NULL;
        way->failure = why;
        conclude(way);
    }
}

static struct way *find(const struct network *network, uint32_t channel)
{
    struct way *way = network->ways;
    while (way && way->channel != channel)
        way = way->next;
    return way;
}

static int take_hello(struct network *network, const struct packet *packet, error *err)
{
    struct egress_hello hello;
    memcpy(&hello, packet->body, sizeof hello);
    if (hello.version != EGRESS_VERSION)
        return fail(err, ERR_PROTOCOL, "glovebox-egress speaks version %u, this is %d",
                    hello.version, EGRESS_VERSION);
    if (network->is_up)
        log_event(LOG_WARNING, "egress.restarted", TEXT("cause", "it had ended"));
    lose_all(network, "glovebox-egress ended, and with it every connection; run it again");
    network->is_up = true;
    return 0;
}

static bool is_ended(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

static int take_record(struct network *network, const struct packet *packet, error *err)
{
    struct egress_record record;
    memcpy(&record, packet->body, sizeof record);
    if (record.reason >= EGRESS_REASONS || record.way >= EGRESS_WAYS ||
        !is_ended(record.name, sizeof record.name) || !is_ended(record.path, sizeof record.path) ||
        !is_ended(record.method, sizeof record.method))
        return fail(err, ERR_PROTOCOL, "glovebox-egress sent a record that is misshapen");
    struct way *way = find(network, record.channel);
    if (!way)
        return 0; /* of a way that was lost */
    if (way->count == way->room && way->count < RECORDS_MOST) {
        size_t room = way->room > 0 ? way->room * 2 : 8;
        void *larger = realloc(way->records, room * sizeof record);
        if (larger) {
            way->records = larger;
            way->room = room;
        }
    }
    if (way->count == way->room)
        way->unlisted++;
    else
        way->records[way->count++] = record;
    return 0;
}

static int take_closed(struct network *network, const struct packet *packet, error *err)
{
    struct egress_closed closed;
    memcpy(&closed, packet->body, sizeof closed);
    struct way *way = find(network, closed.channel);
    (void) err;
    if (!way)
        return 0;
    way->unlisted += closed.lost;
    if (!way->is_ending)
        way->failure = "glovebox-egress could not open the way out; run it again";
    unlink_way(way);
    conclude(way);
    return 0;
}

static const struct {
    size_t size;
    int (*take)(struct network *, const struct packet *, error *);
} hearings[] = {
    [EGRESS_HELLO] = { sizeof(struct egress_hello), take_hello },
    [EGRESS_RECORD] = { sizeof(struct egress_record), take_record },
    [EGRESS_CLOSED] = { sizeof(struct egress_closed), take_closed },
};

static void go_down(struct network *network, const char *why)
{
    log_event(LOG_ERROR, "egress.gone", TEXT("cause", why));
    network->is_up = false;
    (void) uv_poll_stop(&network->poll);
    lose_all(network, "glovebox-egress is gone; start glovebox again");
}

static void on_event(uv_poll_t *poll, int status, int events)
{
    struct network *network = poll->data;
    (void) events;
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
            (void) fail(&err, ERR_PROTOCOL, "message %u is misshapen", packet.kind);
        packet_done(&packet);
        if (done < 0) {
            go_down(network, err.text);
            return;
        }
    }
}

int network_open(uv_loop_t *loop, int socket, struct network **ret_network, error *err)
{
    struct network *network = calloc(1, sizeof *network);
    if (!network)
        return fail(err, ERR_SYSTEM, "no memory for the network");
    network->socket = socket;
    network->poll.data = network;
    if (uv_poll_init(loop, &network->poll, socket) < 0 ||
        uv_poll_start(&network->poll, UV_READABLE, on_event) < 0) {
        free(network);
        return fail(err, ERR_SYSTEM, "watch the socket to glovebox-egress");
    }
    uv_unref((uv_handle_t *) &network->poll); /* a daemon that has nothing else to do may leave */
    *ret_network = network;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct network *network = handle->data;
    (void) close(network->socket);
    free(network);
}

void network_close(struct network *network)
{
    if (!network)
        return;
    lose_all(network, "glovebox ends");
    uv_close((uv_handle_t *) &network->poll, on_closed);
}

static int send_rule(const struct way *way, const struct network_rule *rule, unsigned label,
                     error *err)
{
    struct egress_rule told = {
        .channel = way->channel,
        .label = (uint16_t) label,
        .flags = (uint16_t) ((rule->any_below ? EGRESS_ANY_BELOW : 0) |
                             (rule->has_network ? (rule->host[0] ? EGRESS_PRIVATE : EGRESS_NETWORK)
                                                : 0)),
        .methods = rule->methods,
        .port_count = (uint16_t) rule->port_count,
        .prefix = (uint16_t) rule->prefix,
    };
    memcpy(told.ports, rule->ports, sizeof told.ports);
    memcpy(told.network, rule->network, sizeof told.network);
    memcpy(told.host, rule->host, sizeof told.host);
    memcpy(told.path, rule->path, sizeof rule->path);
    return packet_send(way->network->socket, EGRESS_RULE, &told, sizeof told, NULL, 0, err);
}

static int send_terms(const struct way *way, const struct network_policy *policy,
                      const struct way_sockets *sockets, error *err)
{
    struct egress_open terms = {
        .channel = way->channel,
        .rules = policy->count,
        .connections_most = policy->connections,
        .sent_most = policy->sent ? policy->sent : UINT64_MAX,
        .received_most = policy->received ? policy->received : UINT64_MAX,
    };
    terms.port_count = (uint16_t) network_policy_ports(policy, terms.ports);
    if (sockets->count != (unsigned) EGRESS_LISTEN_PORT + terms.port_count)
        return fail(err, ERR_PROTOCOL, "the sandbox came with %u sockets for its way out",
                    sockets->count);
    return packet_send(way->network->socket, EGRESS_OPEN, &terms, sizeof terms, sockets->list,
                       sockets->count, err);
}

static int open_channel(struct network *network, const struct network_policy *policy,
                        const struct way_sockets *sockets, struct way **ret_way, error *err)
{
    if (!network || !network->is_up)
        return fail(err, ERR_UNAVAILABLE,
                    network
                        ? "glovebox-egress is not there at the moment; try again"
                        : "the policy lets something out, which needs glovebox serve; start it, "
                          "or choose a policy with network: none");
    struct way *way = calloc(1, sizeof *way);
    if (!way)
        return fail(err, ERR_SYSTEM, "no memory for a way out");
    way->network = network;
    way->channel = ++network->last_channel;
    int done = 0;
    for (unsigned i = 0; i < policy->count && done == 0; i++)
        done = send_rule(way, &policy->rules[i], i, err);
    if (done == 0)
        done = send_terms(way, policy, sockets, err);
    if (done < 0) {
        free(way);
        return under(err, "open the way out");
    }
    way->next = network->ways;
    network->ways = way;
    *ret_way = way;
    return 0;
}

int way_open(struct network *network, const struct network_policy *policy,
             const struct way_sockets *sockets, struct way **ret_way, error *err)
{
    int done = open_channel(network, policy, sockets, ret_way, err);
    for (unsigned i = 0; i < sockets->count; i++)
        (void) close(sockets->list[i]);
    return done;
}

static void send_close(const struct way *way)
{
    struct egress_channel named = { .channel = way->channel };
    error unheard;
    (void) packet_send(way->network->socket, EGRESS_CLOSE, &named, sizeof named, NULL, 0, &unheard);
}

void way_end(struct way *way, way_ended *ended, void *context)
{
    way->ended = ended;
    way->context = context;
    if (way->is_ending)
        return;
    way->is_ending = true;
    if (way->network)
        send_close(way);
    else
        ended(context); /* glovebox-egress has ended it already */
}

void way_free(struct way *way)
{
    if (!way)
        return;
    if (!way->network) {
        destroy(way);
        return;
    }
    way->is_freed = true;
    if (!way->is_ending)
        send_close(way);
}

bool way_has_ended(const struct way *way)
{
    return !way->network;
}

const struct egress_record *way_records(const struct way *way, size_t *ret_count)
{
    *ret_count = way->count;
    return way->records;
}

uint64_t way_unlisted(const struct way *way)
{
    return way->unlisted;
}

const char *way_failure(const struct way *way)
{
    return way->failure;
}
