/* rules.c - see rules.h. */
#include "egress/rules.h"

#include "base/endpoint_url.h"
#include "base/host_name.h"
#include "http1/path_match.h"
#include "policy/address.h"

#include <string.h>

static bool is_ended(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

static bool is_canonical(const char *host)
{
    char canonical[HOST_NAME_SIZE];
    return host_name_canonical(host, strlen(host), canonical) == 0 && strcmp(canonical, host) == 0;
}

static bool is_canonical_upstream(const char *host)
{
    char canonical[HOST_NAME_SIZE];
    return endpoint_host_canonical(host, strlen(host), canonical) == 0 &&
           strcmp(canonical, host) == 0;
}

int rules_add_endpoint(struct rules *rules, const struct egress_endpoint *endpoint, error *err)
{
    bool is_sound = rules->endpoint_count < EGRESS_ENDPOINTS_MAX &&
                    is_ended(endpoint->name, sizeof endpoint->name) &&
                    is_ended(endpoint->host, sizeof endpoint->host) &&
                    is_ended(endpoint->path, sizeof endpoint->path) && endpoint->port != 0 &&
                    endpoint->idle_ms != 0 && endpoint->header_count <= EGRESS_HEADERS_MAX &&
                    is_canonical_upstream(endpoint->host);
    for (unsigned i = 0; is_sound && i < endpoint->header_count; i++)
        is_sound = is_ended(endpoint->headers[i], sizeof endpoint->headers[i]);
    if (!is_sound)
        return fail(err, ERR_PROTOCOL, "an endpoint is malformed");
    rules->endpoints[rules->endpoint_count++] = *endpoint;
    return 0;
}

const struct egress_endpoint *rules_endpoint(const struct rules *rules,
                                             const struct egress_rule *rule)
{
    return rule->flags & EGRESS_AT_ENDPOINT ? &rules->endpoints[rule->endpoint] : NULL;
}

int rules_add(struct rules *rules, const struct egress_rule *rule, error *err)
{
    if (rules->count == EGRESS_RULES_MAX)
        return fail(err, ERR_PROTOCOL, "more than %d rules", EGRESS_RULES_MAX);
    if (!is_ended(rule->host, sizeof rule->host) || !is_ended(rule->path, sizeof rule->path) ||
        rule->port_count == 0 || rule->port_count > EGRESS_PORTS_MAX || rule->prefix > 128)
        return fail(err, ERR_PROTOCOL, "rule %u is malformed", rule->label);
    if (!(rule->flags & EGRESS_NETWORK) && !is_canonical(rule->host))
        return fail(err, ERR_PROTOCOL, "rule %u has no canonical name", rule->label);
    if ((rule->flags & EGRESS_INTERCEPTED) && (rule->flags & (EGRESS_NETWORK | EGRESS_AT_ENDPOINT)))
        return fail(err, ERR_PROTOCOL, "rule %u intercepts what has no name", rule->label);
    if ((rule->flags & EGRESS_AT_ENDPOINT) && rule->methods == 0)
        return fail(err, ERR_PROTOCOL, "rule %u has no methods", rule->label);
    if ((rule->flags & EGRESS_AT_ENDPOINT) && rule->endpoint >= rules->endpoint_count)
        return 0; /* its endpoint went to an earlier glovebox-egress: EGRESS_OPEN will not match */
    rules->list[rules->count++] = *rule;
    return 0;
}

static bool has_port(const struct egress_rule *rule, uint16_t port)
{
    for (unsigned i = 0; i < rule->port_count; i++)
        if (rule->ports[i] == port)
            return true;
    return false;
}

static bool looks_inside(const struct egress_rule *rule)
{
    return rule->methods != 0 || rule->path[0] != '\0' || (rule->flags & EGRESS_AT_ENDPOINT);
}

static bool names(const struct egress_rule *rule, const char *name)
{
    return !(rule->flags & EGRESS_NETWORK) &&
           host_name_matches(name, rule->host, rule->flags & EGRESS_ANY_BELOW);
}

bool rules_know(const struct rules *rules, const char *name)
{
    for (uint32_t i = 0; i < rules->count; i++)
        if (names(&rules->list[i], name))
            return true;
    return false;
}

struct decision rules_for_stream(const struct rules *rules, const char *name, uint16_t port)
{
    for (uint32_t i = 0; i < rules->count; i++) {
        const struct egress_rule *rule = &rules->list[i];
        if (names(rule, name) && has_port(rule, port) && !looks_inside(rule) &&
            !(rule->flags & EGRESS_INTERCEPTED))
            return (struct decision){ rule, EGRESS_ALLOWED };
    }
    return (struct decision){ NULL, EGRESS_NO_RULE };
}

const struct egress_rule *rules_intercept(const struct rules *rules, const char *name,
                                          uint16_t port)
{
    for (uint32_t i = 0; i < rules->count; i++) {
        const struct egress_rule *rule = &rules->list[i];
        if ((rule->flags & EGRESS_INTERCEPTED) && names(rule, name) && has_port(rule, port))
            return rule;
    }
    return NULL;
}

struct decision rules_for_connection(const struct rules *rules, const char *name, uint16_t port)
{
    const struct egress_rule *rule = rules_intercept(rules, name, port);
    if (rule)
        return (struct decision){ rule, EGRESS_ALLOWED };
    return rules_for_stream(rules, name, port);
}

/* True if the rule checks or prefixes paths: a path that servers may normalize is then refused. */
static bool path_matters(const struct rules *rules, const struct egress_rule *rule)
{
    const struct egress_endpoint *endpoint = rules_endpoint(rules, rule);
    return rule->path[0] != '\0' || (endpoint && endpoint->path[0] != '\0');
}

/* If all rules refuse, gives the reason of the rule that matched most. */
struct decision rules_for_request(const struct rules *rules, const struct http_head *head,
                                  bool is_intercepted)
{
    enum egress_reason reason = EGRESS_NO_RULE;
    for (uint32_t i = 0; i < rules->count; i++) {
        const struct egress_rule *rule = &rules->list[i];
        if (!names(rule, head->name) || !has_port(rule, head->port) ||
            ((rule->flags & EGRESS_INTERCEPTED) && !is_intercepted))
            continue;
        if (rule->methods != 0 && !(rule->methods & head->method_bit)) {
            reason = reason == EGRESS_NO_RULE ? EGRESS_METHOD : reason;
            continue;
        }
        if (path_matters(rules, rule) && !http_path_is_below(head->path, rule->path)) {
            reason = EGRESS_PATH;
            continue;
        }
        return (struct decision){ rule, EGRESS_ALLOWED };
    }
    return (struct decision){ NULL, reason };
}

struct decision rules_for_address(const struct rules *rules, const struct in6_addr *address,
                                  uint16_t port)
{
    for (uint32_t i = 0; i < rules->count; i++) {
        const struct egress_rule *rule = &rules->list[i];
        if ((rule->flags & EGRESS_NETWORK) && has_port(rule, port) &&
            address_is_within(address, rule->network, rule->prefix))
            return (struct decision){ rule, EGRESS_ALLOWED };
    }
    return (struct decision){ NULL, EGRESS_LITERAL };
}

bool rules_mean_http(const struct rules *rules, uint16_t port)
{
    if (port == 80)
        return true;
    for (uint32_t i = 0; i < rules->count; i++)
        if (has_port(&rules->list[i], port) && looks_inside(&rules->list[i]) &&
            !(rules->list[i].flags & EGRESS_INTERCEPTED))
            return true;
    return false;
}

bool rule_accepts_address(const struct egress_rule *rule, const struct in6_addr *address)
{
    if (rule->flags & (EGRESS_NETWORK | EGRESS_PRIVATE))
        return address_is_within(address, rule->network, rule->prefix);
    return !address_is_special(address);
}
