/* network_file.c - see network_file.h. Rules that glovebox-egress cannot enforce are refused. */
#include "policy/network_file.h"

#include "base/table.h"
#include "base/text.h"
#include "model/limits.h"
#include "policy/address.h"
#include "policy/network_endpoints.h"
#include "policy/network_parts.h"
#include "policy/policy.h"

#include <string.h>

enum { PORT_HTTP = 80, PORT_TLS = 443 };

static int read_host(const struct yaml *yaml, const struct yaml_node *value,
                     struct network_item *item, error *err)
{
    struct network_rule *rule = &item->rule;
    if (value->kind != YAML_TEXT || value->empty)
        return yaml_fail(yaml, value, err, "host is a name; write api.example.org");
    const char *name = value->text;
    rule->any_below = strncmp(name, "*.", 2) == 0;
    name += rule->any_below ? 2 : 0;
    if (host_name_is_literal(name, strlen(name)))
        return yaml_fail(yaml, value, err,
                         "'%.*s' is an address; write it as network, in numbers: 10.1.2.3",
                         text_head(name, 48), name);
    if (host_name_canonical(name, strlen(name), rule->host) < 0)
        return yaml_fail(yaml, value, err,
                         "'%.*s' is no host name; write letters, digits, hyphens and dots",
                         text_head(value->text, 48), value->text);
    if (strcmp(rule->host, "localhost") == 0)
        return yaml_fail(yaml, value, err,
                         "localhost is the sandbox itself inside; for this machine write {network: "
                         "127.0.0.1/32} with its ports, or an endpoint");
    if (rule->any_below && !strchr(rule->host, '.'))
        return yaml_fail(yaml, value, err,
                         "'*.%.*s' has many owners; name at least two labels after the star",
                         text_head(rule->host, 48), rule->host);
    item->is_endpoint = network_is_endpoint(rule->host);
    if (item->is_endpoint && !item->is_wish)
        return yaml_fail(yaml, value, err, "names of endpoints belong under network.endpoints");
    item->has_host = true;
    return 0;
}

static int read_addresses(const struct yaml *yaml, const struct yaml_node *value,
                          struct network_item *item, error *err)
{
    struct network_rule *rule = &item->rule;
    if (value->kind != YAML_TEXT || network_read(value->text, rule->network, &rule->prefix) < 0)
        return yaml_fail(yaml, value, err,
                         "network is a block of addresses; write 10.1.0.0/16, host bits zero");
    rule->has_network = true;
    return 0;
}

static int read_ports(const struct yaml *yaml, const struct yaml_node *value,
                      struct network_item *item, error *err)
{
    struct network_rule *rule = &item->rule;
    if (value->kind != YAML_SEQUENCE || value->children == 0 || value->children > NETWORK_PORTS_MAX)
        return yaml_fail(yaml, value, err, "ports is a list of 1 to %d; write [443]",
                         NETWORK_PORTS_MAX);
    for (const struct yaml_node *port = yaml_first(yaml, value); port;
         port = yaml_next(yaml, port)) {
        unsigned long number = 0;
        if (network_read_number(yaml, port, 65535, &number, err) < 0)
            return -1;
        if (number == 53 || number == 3128)
            return yaml_fail(yaml, port, err,
                             "port %lu is taken inside for names or the proxy; use another",
                             number);
        rule->ports[rule->port_count++] = (uint16_t) number;
    }
    item->has_ports = true;
    return 0;
}

static int read_intercept(const struct yaml *yaml, const struct yaml_node *value,
                          struct network_item *item, error *err)
{
    item->rule.intercept = value->kind == YAML_TEXT && strcmp(value->text, "true") == 0;
    if (!item->rule.intercept && (value->kind != YAML_TEXT || strcmp(value->text, "false") != 0))
        return yaml_fail(yaml, value, err, "intercept is true or false");
    return 0;
}

static const struct network_key key_list[] = {
    { "host", read_host },           { "network", read_addresses },
    { "ports", read_ports },         { "methods", network_read_methods },
    { "paths", network_read_paths }, { "intercept", read_intercept },
};

static const struct network_keys keys = { key_list, COUNT_OF(key_list),
                                          "host, network, ports, methods, paths, intercept" };

static int read_item(const struct yaml *yaml, const struct yaml_node *value,
                     struct network_item *item, error *err)
{
    if (value->kind == YAML_TEXT)
        return read_host(yaml, value, item, err);
    if (value->kind != YAML_MAPPING)
        return yaml_fail(yaml, value, err, "no rule; write {host: api.example.org, ports: [443]}");
    return network_read_item(yaml, value, &keys, item, err);
}

static int check_item(const struct yaml *yaml, const struct yaml_node *value,
                      struct network_item *item, error *err)
{
    struct network_rule *rule = &item->rule;
    if (!item->has_host && !rule->has_network)
        return yaml_fail(yaml, value, err, "a rule names a host or a network; write host: NAME");
    if (!item->has_ports) {
        rule->ports[0] = item->is_endpoint ? PORT_HTTP : PORT_TLS;
        rule->port_count = 1;
    }
    bool looks_inside = item->has_methods || item->paths;
    if (looks_inside && !item->has_host)
        return yaml_fail(yaml, value, err, "methods and paths belong to a host; name it");
    if (rule->intercept && (!item->has_host || item->is_endpoint))
        return yaml_fail(yaml, value, err, "intercept belongs to a host and its TLS; name it");
    for (unsigned i = 0; i < rule->port_count; i++) {
        if (looks_inside && rule->ports[i] == PORT_TLS && !rule->intercept)
            return yaml_fail(yaml, value, err,
                             "methods and paths cannot be seen inside TLS; leave them out for port "
                             "443, have its TLS opened by intercept: true, or allow the host's "
                             "plain HTTP on another port");
        if (rule->intercept && rule->ports[i] == PORT_HTTP)
            return yaml_fail(yaml, value, err,
                             "port 80 has no TLS to intercept; give it a rule of its own");
    }
    return 0;
}

int network_file_read_allow(const struct yaml *yaml, const struct yaml_node *value,
                            struct network_policy *policy, error *err)
{
    if (value->kind != YAML_SEQUENCE)
        return yaml_fail(yaml, value, err,
                         "allow is a list; write [{host: api.example.org, ports: [443]}]");
    for (const struct yaml_node *entry = yaml_first(yaml, value); entry;
         entry = yaml_next(yaml, entry)) {
        struct network_item item = { .is_wish = policy->is_wish };
        if (read_item(yaml, entry, &item, err) < 0 || check_item(yaml, entry, &item, err) < 0 ||
            network_add_rules(yaml, entry, &item, policy, err) < 0)
            return -1;
    }
    return 0;
}

static int check_ports(const struct yaml *yaml, const struct yaml_node *value,
                       const struct network_policy *policy, error *err)
{
    uint16_t ports[NETWORK_PORTS_MAX];
    if (!network_policy_has_all_ports(policy, ports))
        return yaml_fail(yaml, value, err, "more than %d ports in all rules; use fewer",
                         NETWORK_PORTS_MAX);
    return 0;
}

/* Reads only the names; policy_load.c loads the sets (policy/network_set.h). */
static int read_sets(const struct yaml *yaml, const struct yaml_node *value,
                     struct network_policy *policy, error *err)
{
    if (value->kind != YAML_SEQUENCE || value->children > NETWORK_SETS_MAX)
        return yaml_fail(yaml, value, err, "sets is a list of at most %d; write [pip]",
                         NETWORK_SETS_MAX);
    for (const struct yaml_node *name = yaml_first(yaml, value); name;
         name = yaml_next(yaml, name)) {
        if (name->kind != YAML_TEXT || !policy_name_is_valid(name->text))
            return yaml_fail(yaml, name, err,
                             "no name of a set; use small letters, digits and dashes");
        for (unsigned i = 0; i < policy->set_count; i++)
            if (strcmp(policy->sets[i], name->text) == 0)
                return yaml_fail(yaml, name, err, "set '%s' is there twice; remove one",
                                 name->text);
        memcpy(policy->sets[policy->set_count++], name->text, name->length + 1);
    }
    return 0;
}

static int read_bytes(const struct yaml *yaml, const struct yaml_node *value, uint64_t *ret_bytes,
                      error *err)
{
    if (value->kind != YAML_TEXT || value->empty ||
        limit_parse(LIMIT_disk, value->text, ret_bytes, err) < 0 || *ret_bytes == 0)
        return yaml_fail(yaml, value, err, "no amount of bytes; write 10MiB");
    return 0;
}

static int read_key(const struct yaml *yaml, const struct yaml_node *key,
                    const struct yaml_node *value, struct network_policy *policy, error *err)
{
    unsigned long connections = 0;
    if (key->kind == YAML_TEXT && strcmp(key->text, "allow") == 0)
        return network_file_read_allow(yaml, value, policy, err);
    if (key->kind == YAML_TEXT && strcmp(key->text, "endpoints") == 0 && !policy->is_wish)
        return network_endpoints_read(yaml, value, policy, err);
    if (key->kind == YAML_TEXT && strcmp(key->text, "sets") == 0 && !policy->is_wish)
        return read_sets(yaml, value, policy, err);
    if (key->kind == YAML_TEXT && strcmp(key->text, "bytes") == 0)
        return read_bytes(yaml, value, &policy->sent, err);
    if (key->kind == YAML_TEXT && strcmp(key->text, "received") == 0)
        return read_bytes(yaml, value, &policy->received, err);
    if (key->kind != YAML_TEXT || strcmp(key->text, "connections") != 0)
        return yaml_fail(
            yaml, key, err,
            "unknown key; keys are allow, endpoints, sets, bytes, received, connections");
    if (network_read_number(yaml, value, 1024, &connections, err) < 0)
        return -1;
    policy->connections = (uint32_t) connections;
    return 0;
}

static int read_keys(const struct yaml *yaml, const struct yaml_node *value,
                     struct network_policy *ret_policy, error *err)
{
    const char *seen[6];
    unsigned seen_count = 0;
    for (const struct yaml_node *key = yaml_first(yaml, value); key;) {
        const struct yaml_node *part = yaml_next(yaml, key);
        for (unsigned i = 0; i < seen_count; i++)
            if (key->kind == YAML_TEXT && strcmp(seen[i], key->text) == 0)
                return yaml_fail(yaml, key, err, "'%s' is there twice; remove one", key->text);
        if (read_key(yaml, key, part, ret_policy, err) < 0)
            return -1;
        seen[seen_count++] = key->text; /* at most six, since read_key() accepts no other */
        key = yaml_next(yaml, part);
    }
    return check_ports(yaml, value, ret_policy, err);
}

int network_file_read(const struct yaml *yaml, const struct yaml_node *value,
                      struct network_policy *ret_policy, error *err)
{
    *ret_policy = (struct network_policy){ .connections = NETWORK_CONNECTIONS };
    return read_keys(yaml, value, ret_policy, err);
}

int network_wish_file_read(const struct yaml *yaml, const struct yaml_node *value,
                           struct network_policy *ret_policy, error *err)
{
    *ret_policy = (struct network_policy){ .is_wish = true };
    return read_keys(yaml, value, ret_policy, err);
}
