/* routes.c - the ways of egress_client.h: how each is opened, kept, asked about and ended. */
#include "base/packet.h"
#include "engine/network/egress_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REOPEN_MS = 20 };

void way_unlink(struct way *way)
{
    for (struct way **place = &way->network->ways; *place; place = &(*place)->next)
        if (*place == way) {
            *place = way->next;
            break;
        }
    way->network = NULL;
}

bool way_is_reopened(const struct way *way)
{
    return way->kept.order.rules && !way->is_freed && !way->is_ending;
}

static void close_sockets(struct way_sockets *sockets)
{
    for (unsigned i = 0; i < sockets->count; i++)
        (void) close(sockets->list[i]);
    sockets->count = 0;
}

static void destroy(struct way *way)
{
    close_sockets(&way->kept.sockets);
    free(way->records);
    free(way->certificate);
    free(way);
}

void way_answer(struct way *way, unsigned count)
{
    way->questions -= count;
    way->asked = 0;
    for (; count > 0 && !way->is_freed; count--)
        way->kept.told(way->kept.context);
}

void way_conclude(struct way *way)
{
    if (way->is_freed)
        destroy(way);
    else if (way->is_ending)
        way->ended(way->context);
}

void way_shut(struct way *way, const char *why)
{
    way->is_shut = true;
    way->failure = why;
    way_answer(way, way->questions);
}

void way_lose(struct way *way, const char *why)
{
    way_shut(way, why);
    close_sockets(&way->kept.sockets); /* nobody is going to accept there */
    way_unlink(way);
    way_certified *certified = way->is_freed ? NULL : way->certified;
    way->certified = NULL;
    if (certified)
        certified(way->certified_context, NULL); /* it is known that nothing comes */
    way_conclude(way);
}

/* The pieces come one after the other, and nothing else lies between them. */
int way_hear_authority(struct way *way, const struct egress_authority *piece)
{
    if (piece->size > sizeof piece->text || piece->whole >= EGRESS_AUTHORITY_MOST ||
        piece->from + piece->size > piece->whole ||
        (piece->from != 0 && piece->from != way->certificate_size))
        return -1;
    if (!way->certificate)
        way->certificate = malloc(EGRESS_AUTHORITY_MOST);
    if (!way->certificate)
        return 0; /* the sandbox waits in vain, and is told so by its clock */
    memcpy(way->certificate + piece->from, piece->text, piece->size);
    way->certificate_size = (size_t) piece->from + piece->size;
    if (way->certificate_size < piece->whole)
        return 0;
    way->certificate[way->certificate_size] = '\0';
    if (strlen(way->certificate) != way->certificate_size)
        return -1;
    way_certified *certified = way->is_freed ? NULL : way->certified;
    if (!way->kept.order.rules)
        way->certified = NULL; /* once */
    if (certified)
        certified(way->certified_context, way->certificate);
    return 0;
}

/* --- opening -------------------------------------------------------------------------------------
 */

/* Of an amount that the policy allows, 0 for any. */
static uint64_t left_of(uint64_t most, uint64_t used)
{
    if (most == 0)
        return UINT64_MAX;
    return used < most ? most - used : 0;
}

static int send_terms(const struct way *way, const struct network_policy *policy,
                      const struct way_sockets *sockets, error *err)
{
    struct egress_open terms = {
        .channel = way->channel,
        .rules = policy->count,
        .endpoints = policy->endpoint_count,
        .life_s = way->life_s,
        .connections_most = policy->connections,
        .sent_most = left_of(policy->sent, way->used.sent),
        .received_most = left_of(policy->received, way->used.received),
    };
    terms.port_count = (uint16_t) network_policy_ports(policy, terms.ports);
    if (sockets->count != (unsigned) EGRESS_LISTEN_PORT + terms.port_count)
        return fail(err, ERR_PROTOCOL, "the sandbox came with %u sockets for its way out",
                    sockets->count);
    return packet_send(way->network->socket, EGRESS_OPEN, &terms, sizeof terms, sockets->list,
                       sockets->count, err);
}

static int send_all(struct way *way, const struct network_policy *policy,
                    const struct way_sockets *sockets, error *err)
{
    way->channel = ++way->network->last_channel;
    if (way_send_rules(way, policy, err) < 0)
        return -1;
    return send_terms(way, policy, sockets, err);
}

static int open_channel(struct network *network, const struct way_terms *terms,
                        struct way **ret_way, error *err)
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
    const struct way_order *order = &terms->order;
    way->life_s = terms->life_s;
    way->used = terms->used;
    if (network_policy_intercepts(order->rules)) {
        way->certified = terms->certified;
        way->certified_context = terms->context;
    }
    way->source.account = order->account;
    (void) snprintf(way->source.id, sizeof way->source.id, "%s", order->id);
    traffic_source_init(network->traffic, order->policy, order->rules, &way->source);
    if (send_all(way, order->rules, &terms->sockets, err) < 0) {
        free(way);
        return under(err, "open the way out");
    }
    way->next = network->ways;
    network->ways = way;
    *ret_way = way;
    return 0;
}

int way_open(struct network *network, const struct way_terms *terms, struct way **ret_way,
             error *err)
{
    struct way_sockets ours = terms->sockets;
    int done = open_channel(network, terms, ret_way, err);
    close_sockets(&ours);
    return done;
}

/* --- ways that are kept -------------------------------------------------------------------------
 */

int way_keep(struct network *network, const struct way_terms *terms, struct way **ret_way,
             error *err)
{
    struct way_sockets ours = terms->sockets;
    if (open_channel(network, terms, ret_way, err) < 0) {
        close_sockets(&ours);
        return -1;
    }
    struct way *way = *ret_way;
    way->kept = *terms;
    return 0;
}

static void on_reopen(uv_timer_t *timer)
{
    ways_reopen(timer->data);
}

void ways_reopen_later(struct network *network)
{
    (void) uv_timer_start(&network->reopen, on_reopen, REOPEN_MS, 0);
}

/* Many at once may be more than the socket takes. */
void ways_reopen(struct network *network)
{
    for (struct way *way = network->ways; way; way = way->next) {
        error err;
        if (!way->is_shut || !way_is_reopened(way))
            continue;
        if (send_all(way, way->kept.order.rules, &way->kept.sockets, &err) < 0) {
            ways_reopen_later(network);
            return;
        }
        way->is_shut = false;
    }
}

static int send_about(const struct way *way, enum egress_kind kind)
{
    struct egress_channel named = { .channel = way->channel };
    error unheard;
    return packet_send(way->network->socket, kind, &named, sizeof named, NULL, 0, &unheard);
}

void way_send_question(struct way *way)
{
    way->asked = way->questions;
    if (send_about(way, EGRESS_TELL) < 0)
        way_answer(way, way->questions);
}

void way_ask(struct way *way)
{
    way->questions++;
    if (!way->network || way->is_shut)
        way_answer(way, way->questions);
    else if (way->asked == 0)
        way_send_question(way);
}

void way_forget(struct way *way)
{
    free(way->records);
    way->records = NULL;
    way->count = way->room = 0;
    way->unlisted = 0;
    way->failure = way->network ? NULL : way->failure;
}

/* --- the end of a way ---------------------------------------------------------------------------
 */

void way_send_close(const struct way *way)
{
    (void) send_about(way, EGRESS_CLOSE);
}

void way_end(struct way *way, way_ended *ended, void *context)
{
    way->ended = ended;
    way->context = context;
    if (way->is_ending)
        return;
    way->is_ending = true;
    if (way->kept.order.rules)
        way->certified = NULL;
    if (way->network && way->is_shut) /* nobody is there who would answer */
        way_unlink(way);
    if (way->network)
        way_send_close(way);
    else
        ended(context); /* glovebox-egress has ended it already */
}

struct way_bytes way_used(const struct way *way)
{
    return way->used;
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
    close_sockets(&way->kept.sockets);
    if (!way->is_ending)
        way_send_close(way);
}

bool way_has_ended(const struct way *way)
{
    return !way->network;
}

size_t way_record_count(const struct way *way)
{
    return way->count;
}

void way_tell(const struct way *way, size_t told, struct way_story *ret_story)
{
    size_t count = way->count > told ? way->count - told : 0;
    struct egress_record *records = count > 0 ? calloc(count, sizeof *records) : NULL;
    *ret_story = (struct way_story){ .records = records,
                                     .count = records ? count : 0,
                                     .unlisted = way->unlisted + (records ? 0 : count),
                                     .failure = way->failure };
    if (records)
        memcpy(records, way->records + told, count * sizeof *records);
}

void way_story_done(struct way_story *story)
{
    free(story->records);
    *story = (struct way_story){ 0 };
}
