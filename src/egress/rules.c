/* rules.c - see rules.h. */
#include "egress/rules.h"

#include "model/address.h"
#include "model/host_name.h"

#include <string.h>

static bool is_ended(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

int rules_add(struct rules *rules, const struct egress_rule *rule, error *err)
{
    char canonical[HOST_NAME_SIZE];
    if (rules->count == EGRESS_RULES_MOST)
        return fail(err, ERR_PROTOCOL, "more than %d rules", EGRESS_RULES_MOST);
    if (!is_ended(rule->host, sizeof rule->host) || !is_ended(rule->path, sizeof rule->path) ||
        rule->port_count == 0 || rule->port_count > EGRESS_PORTS_MOST || rule->prefix > 128)
        return fail(err, ERR_PROTOCOL, "rule %u is misshapen", rule->label);
    if (!(rule->flags & EGRESS_NETWORK) &&
        (host_name_canonical(rule->host, strlen(rule->host), canonical) < 0 ||
         strcmp(canonical, rule->host) != 0))
        return fail(err, ERR_PROTOCOL, "rule %u has no canonical name", rule->label);
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
    return rule->methods != 0 || rule->path[0] != '\0';
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
        if (names(rule, name) && has_port(rule, port) && !looks_inside(rule))
            return (struct decision){ rule, EGRESS_ALLOWED };
    }
    return (struct decision){ NULL, EGRESS_NO_RULE };
}

/* The refusal that came closest is the one worth telling. */
struct decision rules_for_request(const struct rules *rules, const struct http_head *head)
{
    enum egress_reason reason = EGRESS_NO_RULE;
    for (uint32_t i = 0; i < rules->count; i++) {
        const struct egress_rule *rule = &rules->list[i];
        if (!names(rule, head->name) || !has_port(rule, head->port))
            continue;
        if (rule->methods != 0 && !(rule->methods & head->method_bit)) {
            reason = reason == EGRESS_NO_RULE ? EGRESS_METHOD : reason;
            continue;
        }
        if (rule->path[0] != '\0' && !http_path_is_below(head->path, rule->path)) {
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
        if (has_port(&rules->list[i], port) && looks_inside(&rules->list[i]))
            return true;
    return false;
}

bool rule_accepts_address(const struct egress_rule *rule, const struct in6_addr *address)
{
    if (rule->flags & (EGRESS_NETWORK | EGRESS_PRIVATE))
        return address_is_within(address, rule->network, rule->prefix);
    return !address_is_special(address);
}
