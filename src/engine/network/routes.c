/* routes.c - the routes of egress_client.h: how they are opened, kept, queried and ended. */
#include "base/list.h"
#include "base/packet.h"
#include "engine/network/egress_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REOPEN_MS = 20 };

void egress_route_unlink(struct egress_route *route)
{
    (void) list_remove(route->network->egress_routes, route, next);
    route->network = NULL;
}

bool egress_route_is_reopened(const struct egress_route *route)
{
    return route->kept.order.rules && !route->is_freed && !route->is_ending;
}

static void close_sockets(struct egress_route_sockets *sockets)
{
    for (unsigned i = 0; i < sockets->count; i++)
        (void) close(sockets->list[i]);
    sockets->count = 0;
}

static void destroy(struct egress_route *route)
{
    close_sockets(&route->kept.sockets);
    free(route->records);
    free(route->certificate);
    free(route);
}

void egress_route_answer(struct egress_route *route, unsigned count)
{
    route->questions -= count;
    route->asked = 0;
    for (; count > 0 && !route->is_freed; count--)
        route->kept.told(route->kept.context);
}

void egress_route_conclude(struct egress_route *route)
{
    if (route->is_freed)
        destroy(route);
    else if (route->is_ending)
        route->ended(route->context);
}

void egress_route_shut(struct egress_route *route, const char *why)
{
    route->is_shut = true;
    route->failure = why;
    route->unlisted += route->open; /* their records will not come */
    route->open = 0;
    egress_route_answer(route, route->questions);
}

void egress_route_lose(struct egress_route *route, const char *why)
{
    egress_route_shut(route, why);
    close_sockets(&route->kept.sockets); /* no process will accept on them */
    egress_route_unlink(route);
    egress_route_certified *certified = route->is_freed ? NULL : route->certified;
    route->certified = NULL;
    if (certified)
        certified(route->certified_context, NULL); /* no certificate will come */
    egress_route_conclude(route);
}

/* The pieces of a certificate come in order, with nothing between them. */
int egress_route_hear_authority(struct egress_route *route, const struct egress_authority *piece)
{
    if (piece->size > sizeof piece->text || piece->whole >= EGRESS_AUTHORITY_MAX ||
        piece->from + piece->size > piece->whole ||
        (piece->from != 0 && piece->from != route->certificate_size))
        return -1;
    if (!route->certificate)
        route->certificate = malloc(EGRESS_AUTHORITY_MAX);
    if (!route->certificate)
        return 0; /* the sandbox waits until its timeout */
    memcpy(route->certificate + piece->from, piece->text, piece->size);
    route->certificate_size = (size_t) piece->from + piece->size;
    if (route->certificate_size < piece->whole)
        return 0;
    route->certificate[route->certificate_size] = '\0';
    if (strlen(route->certificate) != route->certificate_size)
        return -1;
    egress_route_certified *certified = route->is_freed ? NULL : route->certified;
    if (!route->kept.order.rules)
        route->certified = NULL; /* called only once */
    if (certified)
        certified(route->certified_context, route->certificate);
    return 0;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* The rest of an amount that the policy allows, 0: no bound. */
static uint64_t left_of(uint64_t max, uint64_t used)
{
    if (max == 0)
        return UINT64_MAX;
    return used < max ? max - used : 0;
}

static int send_terms(const struct egress_route *route, const struct network_policy *policy,
                      const struct egress_route_sockets *sockets, error *err)
{
    struct egress_open terms = {
        .channel = route->channel,
        .rules = policy->count,
        .endpoints = policy->endpoint_count,
        .life_s = route->life_s,
        .connections_max = policy->connections,
        .sent_max = left_of(policy->sent, route->used.sent),
        .received_max = left_of(policy->received, route->used.received),
    };
    terms.port_count = (uint16_t) network_policy_ports(policy, terms.ports);
    if (sockets->count != (unsigned) EGRESS_LISTEN_PORT + terms.port_count)
        return fail(err, ERR_PROTOCOL, "the sandbox came with %u sockets for its egress",
                    sockets->count);
    return packet_send(route->network->socket, EGRESS_OPEN, &terms, sizeof terms, sockets->list,
                       sockets->count, err);
}

static int send_all(struct egress_route *route, const struct network_policy *policy,
                    const struct egress_route_sockets *sockets, error *err)
{
    route->channel = ++route->network->last_channel;
    if (egress_route_send_rules(route, policy, err) < 0)
        return -1;
    return send_terms(route, policy, sockets, err);
}

int network_demand(const struct network *network, const char *policy, error *err)
{
    static const char text[] = "policy %s allows connections, which needs a running service; start "
                               "one: glovebox serve; or choose a policy with network: none";
    return network ? 0 : fail(err, ERR_UNAVAILABLE, text, policy);
}

static int open_channel(struct network *network, const struct egress_route_terms *terms,
                        struct egress_route **ret_route, error *err)
{
    if (!network || !network->is_up)
        return fail(err, ERR_UNAVAILABLE,
                    "glovebox-egress is not running at the moment; try again");
    struct egress_route *route = calloc(1, sizeof *route);
    if (!route)
        return fail(err, ERR_SYSTEM, "no memory for an egress route");
    route->network = network;
    const struct egress_route_order *order = &terms->order;
    route->life_s = terms->life_s;
    route->used = terms->used;
    if (network_policy_intercepts(order->rules)) {
        route->certified = terms->certified;
        route->certified_context = terms->context;
    }
    route->source.account = order->account;
    (void) snprintf(route->source.id, sizeof route->source.id, "%s", order->id);
    traffic_source_init(network->traffic, order->policy, order->rules, &route->source);
    if (send_all(route, order->rules, &terms->sockets, err) < 0) {
        free(route);
        return under(err, "open egress");
    }
    route->next = network->egress_routes;
    network->egress_routes = route;
    *ret_route = route;
    return 0;
}

int egress_route_open(struct network *network, const struct egress_route_terms *terms,
                      struct egress_route **ret_route, error *err)
{
    struct egress_route_sockets ours = terms->sockets;
    int done = open_channel(network, terms, ret_route, err);
    close_sockets(&ours);
    return done;
}

/* --- kept routes ------------------------------------------------------------------------------ */

int egress_route_keep(struct network *network, const struct egress_route_terms *terms,
                      struct egress_route **ret_route, error *err)
{
    struct egress_route_sockets ours = terms->sockets;
    if (open_channel(network, terms, ret_route, err) < 0) {
        close_sockets(&ours);
        return -1;
    }
    struct egress_route *route = *ret_route;
    route->kept = *terms;
    return 0;
}

static void on_reopen(uv_timer_t *timer)
{
    egress_routes_reopen(timer->data);
}

void egress_routes_reopen_later(struct network *network)
{
    (void) uv_timer_start(&network->reopen, on_reopen, REOPEN_MS, 0);
}

/* The socket may not take them all at once. */
void egress_routes_reopen(struct network *network)
{
    for (struct egress_route *route = network->egress_routes; route; route = route->next) {
        error err;
        if (route->close_is_due)
            egress_route_send_close(route);
        if (route->close_is_due || !route->is_shut || !egress_route_is_reopened(route))
            continue;
        if (send_all(route, route->kept.order.rules, &route->kept.sockets, &err) < 0) {
            egress_routes_reopen_later(network);
            return;
        }
        route->is_shut = false;
    }
}

static int send_about(const struct egress_route *route, enum egress_kind kind)
{
    struct egress_channel named = { .channel = route->channel };
    error unheard;
    return packet_send(route->network->socket, kind, &named, sizeof named, NULL, 0, &unheard);
}

void egress_route_send_question(struct egress_route *route)
{
    route->asked = route->questions;
    if (send_about(route, EGRESS_TELL) < 0)
        egress_route_answer(route, route->questions);
}

void egress_route_ask(struct egress_route *route)
{
    route->questions++;
    if (!route->network || route->is_shut)
        egress_route_answer(route, route->questions);
    else if (route->asked == 0)
        egress_route_send_question(route);
}

void egress_route_forget(struct egress_route *route)
{
    free(route->records);
    route->records = NULL;
    route->count = route->room = 0;
    route->unlisted = 0;
    route->failure = route->network ? NULL : route->failure;
}

/* --- the end of a route ----------------------------------------------------------------------- */

/* The answer is awaited, so a message that the kernel has no room or memory for is sent again. */
void egress_route_send_close(struct egress_route *route)
{
    route->close_is_due = send_about(route, EGRESS_CLOSE) < 0;
    if (route->close_is_due)
        egress_routes_reopen_later(route->network);
}

void egress_route_end(struct egress_route *route, egress_route_ended *ended, void *context)
{
    route->ended = ended;
    route->context = context;
    if (route->is_ending)
        return;
    route->is_ending = true;
    if (route->kept.order.rules)
        route->certified = NULL;
    if (route->network && route->is_shut) /* glovebox-egress would not answer */
        egress_route_unlink(route);
    if (route->network)
        egress_route_send_close(route);
    else
        ended(context); /* glovebox-egress has ended it already */
}

struct egress_route_bytes route_used(const struct egress_route *route)
{
    return route->used;
}

void egress_route_free(struct egress_route *route)
{
    if (!route)
        return;
    if (!route->network) {
        destroy(route);
        return;
    }
    route->is_freed = true;
    close_sockets(&route->kept.sockets);
    if (!route->is_ending)
        egress_route_send_close(route);
}

bool egress_route_has_ended(const struct egress_route *route)
{
    return !route->network;
}

size_t egress_route_record_count(const struct egress_route *route)
{
    return route->count;
}

void egress_route_tell(const struct egress_route *route, size_t told,
                       struct connection_log *ret_log)
{
    size_t count = route->count > told ? route->count - told : 0;
    struct egress_record *records = count > 0 ? calloc(count, sizeof *records) : NULL;
    *ret_log = (struct connection_log){ .records = records,
                                        .count = records ? count : 0,
                                        .unlisted = route->unlisted + (records ? 0 : count),
                                        .failure = route->failure };
    if (records)
        memcpy(records, route->records + told, count * sizeof *records);
}

void connection_log_done(struct connection_log *kept)
{
    free(kept->records);
    *kept = (struct connection_log){ 0 };
}
