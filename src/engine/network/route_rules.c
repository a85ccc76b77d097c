/* route_rules.c - sends the network rules of a policy to glovebox-egress. */
#include "base/packet.h"
#include "engine/network/egress_internal.h"

#include <string.h>

static int send_endpoint(const struct egress_route *route, const struct network_endpoint *endpoint,
                         error *err)
{
    struct egress_endpoint told = {
        .channel = route->channel,
        .rate = endpoint->rate,
        .idle_ms = endpoint->idle_ms > 0 ? endpoint->idle_ms : ENDPOINT_IDLE_MS,
        .port = endpoint->url.port,
        .is_tls = endpoint->url.is_tls,
        .header_count = (uint16_t) endpoint->header_count,
    };
    memcpy(told.name, endpoint->name, sizeof told.name);
    memcpy(told.host, endpoint->url.host, sizeof told.host);
    memcpy(told.path, endpoint->url.path, sizeof endpoint->url.path);
    memcpy(told.headers, endpoint->headers, sizeof told.headers);
    return packet_send(route->network->socket, EGRESS_ENDPOINT, &told, sizeof told, NULL, 0, err);
}

static uint16_t flags_of(const struct network_rule *rule)
{
    unsigned flags =
        (rule->any_below ? EGRESS_ANY_BELOW : 0U) | (rule->intercept ? EGRESS_INTERCEPTED : 0U);
    if (rule->has_network)
        flags |= rule->host[0] ? EGRESS_PRIVATE : EGRESS_NETWORK;
    return (uint16_t) flags;
}

static int send_rule(const struct egress_route *route, const struct network_policy *policy,
                     unsigned label, error *err)
{
    const struct network_rule *rule = &policy->rules[label];
    const struct network_endpoint *endpoint = network_rule_endpoint(policy, rule);
    struct egress_rule told = {
        .channel = route->channel,
        .label = (uint16_t) label,
        .flags = flags_of(rule),
        .methods = rule->methods,
        .port_count = (uint16_t) rule->port_count,
        .prefix = (uint16_t) rule->prefix,
    };
    memcpy(told.ports, rule->ports, sizeof told.ports);
    memcpy(told.network, rule->network, sizeof told.network);
    memcpy(told.host, rule->host, sizeof told.host);
    memcpy(told.path, rule->path, sizeof rule->path);
    if (endpoint) {
        told.flags |= EGRESS_AT_ENDPOINT | (endpoint->has_network ? EGRESS_PRIVATE : 0);
        told.endpoint = (uint16_t) rule->endpoint;
        told.prefix = (uint16_t) endpoint->prefix;
        memcpy(told.network, endpoint->network, sizeof told.network);
    }
    return packet_send(route->network->socket, EGRESS_RULE, &told, sizeof told, NULL, 0, err);
}

int egress_route_send_rules(const struct egress_route *route, const struct network_policy *policy,
                            error *err)
{
    for (unsigned i = 0; i < policy->endpoint_count; i++)
        if (send_endpoint(route, &policy->endpoints[i], err) < 0)
            return -1;
    for (unsigned i = 0; i < policy->count; i++)
        if (send_rule(route, policy, i, err) < 0)
            return -1;
    return 0;
}
