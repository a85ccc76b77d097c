/* network_policy.c - see network_policy.h. */
#include "policy/network_policy.h"

#include "base/http_method.h"
#include "base/table.h"
#include "policy/address.h"

#include <stdio.h>
#include <string.h>

static void add_port(uint16_t port, uint16_t *ports, unsigned *count)
{
    unsigned at = 0;
    while (at < *count && ports[at] < port)
        at++;
    if ((at < *count && ports[at] == port) || *count == NETWORK_PORTS_MAX)
        return;
    memmove(ports + at + 1, ports + at, (*count - at) * sizeof *ports);
    ports[at] = port;
    (*count)++;
}

unsigned network_policy_ports(const struct network_policy *policy,
                              uint16_t ret_ports[NETWORK_PORTS_MAX])
{
    unsigned count = policy->listen_count;
    memcpy(ret_ports, policy->listens, sizeof policy->listens);
    for (unsigned i = 0; i < policy->count; i++)
        for (unsigned p = 0; p < policy->rules[i].port_count; p++)
            add_port(policy->rules[i].ports[p], ret_ports, &count);
    return count;
}

bool network_policy_intercepts(const struct network_policy *policy)
{
    for (unsigned i = 0; i < policy->count; i++)
        if (policy->rules[i].intercept)
            return true;
    return false;
}

bool network_is_endpoint(const char *host)
{
    size_t length = strlen(host), suffix = strlen(ENDPOINT_SUFFIX);
    return length > suffix && strcmp(host + length - suffix, ENDPOINT_SUFFIX) == 0;
}

const struct network_endpoint *network_rule_endpoint(const struct network_policy *policy,
                                                     const struct network_rule *rule)
{
    return network_is_endpoint(rule->host) ? &policy->endpoints[rule->endpoint] : NULL;
}

bool network_policy_has_all_ports(const struct network_policy *policy,
                                  uint16_t ret_ports[NETWORK_PORTS_MAX])
{
    unsigned count = network_policy_ports(policy, ret_ports);
    for (unsigned i = 0; i < policy->count; i++)
        for (unsigned p = 0; p < policy->rules[i].port_count; p++) {
            unsigned at = 0;
            while (at < count && ret_ports[at] != policy->rules[i].ports[p])
                at++;
            if (at == count)
                return false;
        }
    return true;
}

static size_t add_text(char *text, size_t used, const char *more, const char *before)
{
    int wrote = snprintf(text + used, NETWORK_RULE_TEXT - used, "%s%s", before, more);
    used += wrote > 0 ? (size_t) wrote : 0;
    return used < NETWORK_RULE_TEXT ? used : NETWORK_RULE_TEXT - 1;
}

/* "10.1.0.0/16". */
static size_t add_network(char *text, size_t used, const unsigned char network[16], unsigned prefix)
{
    char word[ADDRESS_TEXT + 8];
    struct in6_addr address;
    char written[ADDRESS_TEXT];
    memcpy(&address, network, sizeof address);
    address_write(&address, written);
    bool is_four = IN6_IS_ADDR_V4MAPPED(&address) && prefix >= 96;
    (void) snprintf(word, sizeof word, "%s/%u", written, prefix - (is_four ? 96 : 0));
    return add_text(text, used, word, used > 0 ? " in " : "");
}

void network_rule_write(const struct network_rule *rule, char ret_text[NETWORK_RULE_TEXT])
{
    char word[8];
    size_t used = add_text(ret_text, 0, rule->host, rule->any_below ? "*." : "");
    if (rule->has_network)
        used = add_network(ret_text, used, rule->network, rule->prefix);
    for (unsigned i = 0; i < rule->port_count; i++) {
        (void) snprintf(word, sizeof word, "%u", rule->ports[i]);
        used = add_text(ret_text, used, word, i == 0 ? ":" : ",");
    }
    bool is_first = true;
    for_each(row, http_methods)
        if (rule->methods & row->bit) {
            used = add_text(ret_text, used, row->name, is_first ? " " : ",");
            is_first = false;
        }
    if (rule->path[0])
        used = add_text(ret_text, used, rule->path, " ");
    if (rule->intercept)
        (void) add_text(ret_text, used, "intercepted", " ");
}

void network_endpoint_write(const struct network_endpoint *endpoint,
                            char ret_text[NETWORK_RULE_TEXT])
{
    const struct endpoint_url *url = &endpoint->url;
    char word[32];
    size_t used = add_text(ret_text, 0, endpoint->name, "");
    used = add_text(ret_text, used, url->is_tls ? "https://" : "http://", ENDPOINT_SUFFIX " -> ");
    used = add_text(ret_text, used, url->host, "");
    (void) snprintf(word, sizeof word, ":%u", url->port);
    used = add_text(ret_text, used, url->path, word);
    if (endpoint->has_network)
        used = add_network(ret_text, used, endpoint->network, endpoint->prefix);
    for (unsigned i = 0; i < endpoint->header_count; i++)
        used = add_text(ret_text, used, endpoint->headers[i], i == 0 ? " with " : ", ");
    if (endpoint->rate > 0) {
        (void) snprintf(word, sizeof word, "%u a minute", endpoint->rate);
        used = add_text(ret_text, used, word, ", ");
    }
    if (endpoint->idle_ms > 0) {
        (void) snprintf(word, sizeof word, "idle %g s", endpoint->idle_ms / 1000.0);
        (void) add_text(ret_text, used, word, ", ");
    }
}
