/* network_narrow.c - see network_narrow.h. Each rule of the request is intersected with each rule
 * of the policy; the union of the intersections must cover the rule of the request. */
#include "policy/network_narrow.h"

#include "policy/address.h"
#include "policy/network_file.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

int network_wish_read(const char *text, size_t length, struct network_wish *ret_wish, error *err)
{
    auto_yaml yaml = { 0 };
    *ret_wish = (struct network_wish){ .is_given = true };
    if (yaml_init(&yaml, "network", text, length, err) < 0)
        return -1;
    const struct yaml_node *root = &yaml.nodes[0];
    if (root->kind == YAML_MAPPING)
        return network_wish_file_read(&yaml, root, &ret_wish->rules, err);
    if (root->kind != YAML_TEXT || strcmp(root->text, "none") != 0)
        return yaml_fail(&yaml, root, err, "network is none or {allow: [...]}");
    return 0;
}

/* How much of a rule of the request is covered, and by what. */
struct cut {
    uint32_t ports; /* a bit for each of the wish's ports */
    uint32_t methods;
    bool has_any;
};

static bool host_lies_within(const struct network_rule *wish, const struct network_rule *rule)
{
    if (!wish->host[0] || !rule->host[0])
        return !wish->host[0] && !rule->host[0];
    if (!wish->any_below)
        return host_name_matches(wish->host, rule->host, rule->any_below);
    return rule->any_below &&
           (strcmp(wish->host, rule->host) == 0 || host_name_matches(wish->host, rule->host, true));
}

static bool network_lies_within(const struct network_rule *wish, const struct network_rule *rule)
{
    struct in6_addr network;
    if (!wish->has_network)
        return true; /* the policy's network, if it has one */
    memcpy(&network, wish->network, sizeof network);
    return rule->has_network && wish->prefix >= rule->prefix &&
           address_is_within(&network, rule->network, rule->prefix);
}

static bool path_begins_with(const char *path, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncmp(path, prefix, length) == 0 && (length == 0 || prefix[length - 1] == '/' ||
                                                  path[length] == '\0' || path[length] == '/');
}

/* The intersection of two path prefixes: the longer one, if it begins with the other. */
static const char *cut_path(const char *wish, const char *rule)
{
    if (path_begins_with(wish, rule))
        return wish;
    return wish[0] == '\0' ? rule : NULL;
}

static void cut_ports(const struct network_rule *wish, const struct network_rule *rule,
                      struct network_rule *both, struct cut *cut)
{
    both->port_count = 0;
    for (unsigned w = 0; w < wish->port_count; w++)
        for (unsigned p = 0; p < rule->port_count; p++)
            if (wish->ports[w] == rule->ports[p]) {
                both->ports[both->port_count++] = wish->ports[w];
                cut->ports |= 1U << w;
                break;
            }
}

/* Intersects two rules. Returns false if nothing is left. */
static bool cut_rule(const struct network_rule *wish, const struct network_rule *rule,
                     struct network_rule *both, struct cut *cut)
{
    struct cut fresh = *cut;
    const char *path = cut_path(wish->path, rule->path);
    if (!host_lies_within(wish, rule) || !network_lies_within(wish, rule) || !path ||
        (wish->intercept && !rule->intercept))
        return false;
    *both = *rule;
    memcpy(both->host, wish->host, sizeof both->host);
    both->any_below = wish->any_below;
    if (wish->has_network) {
        memcpy(both->network, wish->network, sizeof both->network);
        both->prefix = wish->prefix;
    }
    (void) snprintf(both->path, sizeof both->path, "%s", path);
    if (wish->methods != 0) {
        both->methods = rule->methods != 0 ? rule->methods & wish->methods : wish->methods;
        fresh.methods |= both->methods;
        if (both->methods == 0)
            return false;
    }
    cut_ports(wish, rule, both, &fresh);
    if (both->port_count == 0)
        return false;
    fresh.has_any = true;
    *cut = fresh;
    return true;
}

static int refuse(const struct policy *policy, const struct network_rule *missing, error *err)
{
    char text[NETWORK_RULE_TEXT];
    network_rule_write(missing, text);
    return fail(err, ERR_POLICY,
                "network: no rule of policy %s allows %.110s; ask for what glovebox policy show %s "
                "lists, or for another policy",
                policy->name, text, policy->name);
}

/* The rule of the request, without what is covered. */
static struct network_rule missing_of(const struct network_rule *wish, const struct cut *cut)
{
    struct network_rule missing = *wish;
    if (!cut->has_any)
        return missing;
    missing.port_count = 0;
    for (unsigned i = 0; i < wish->port_count; i++)
        if (!(cut->ports & (1U << i)))
            missing.ports[missing.port_count++] = wish->ports[i];
    missing.methods = wish->methods & ~cut->methods;
    return missing;
}

static int narrow_rule(const struct policy *policy, const struct network_rule *wish,
                       struct network_policy *narrowed, error *err)
{
    struct cut cut = { 0 };
    for (unsigned i = 0; i < policy->route.count; i++) {
        struct network_rule both;
        if (!cut_rule(wish, &policy->route.rules[i], &both, &cut))
            continue;
        if (narrowed->count == NETWORK_RULES_MAX)
            return fail(err, ERR_POLICY, "network: more than %d rules are left; ask for fewer",
                        NETWORK_RULES_MAX);
        both.origin = i;
        narrowed->rules[narrowed->count++] = both;
    }
    struct network_rule missing = missing_of(wish, &cut);
    if (!cut.has_any || missing.port_count > 0 || missing.methods != 0)
        return refuse(policy, &missing, err);
    return 0;
}

static int narrow_amount(const struct policy *policy, const char *name, uint64_t wish,
                         uint64_t *max, error *err)
{
    if (wish == 0)
        return 0;
    if (*max != 0 && wish > *max)
        return fail(err, ERR_POLICY,
                    "network: %s %llu was asked, policy %s allows %llu; ask for less", name,
                    (unsigned long long) wish, policy->name, (unsigned long long) *max);
    *max = wish;
    return 0;
}

int network_narrow(const struct policy *policy, const struct network_wish *wish,
                   struct network_policy *ret_narrowed, error *err)
{
    const struct network_policy *whole = &policy->route;
    uint64_t connections = whole->connections;
    *ret_narrowed = (struct network_policy){ .sent = whole->sent, .received = whole->received };
    if (wish->rules.count == 0)
        return 0;
    if (policy->network != POLICY_NETWORK_RULES)
        return refuse(policy, &wish->rules.rules[0], err);
    ret_narrowed->set_count = whole->set_count;
    memcpy(ret_narrowed->sets, whole->sets, sizeof whole->sets);
    ret_narrowed->endpoint_count = whole->endpoint_count;
    memcpy(ret_narrowed->endpoints, whole->endpoints, sizeof whole->endpoints);
    ret_narrowed->listen_count = network_policy_ports(whole, ret_narrowed->listens);
    for (unsigned i = 0; i < wish->rules.count; i++)
        if (narrow_rule(policy, &wish->rules.rules[i], ret_narrowed, err) < 0)
            return -1;
    if (narrow_amount(policy, "bytes", wish->rules.sent, &ret_narrowed->sent, err) < 0 ||
        narrow_amount(policy, "received", wish->rules.received, &ret_narrowed->received, err) < 0 ||
        narrow_amount(policy, "connections", wish->rules.connections, &connections, err) < 0)
        return -1;
    ret_narrowed->connections = (uint32_t) connections;
    return 0;
}
