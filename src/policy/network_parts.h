/* network_parts.h - shared by rules and endpoints of a policy file. All functions fail with the
 * place, the cause and the fix. */
#pragma once

#include "policy/network_policy.h"
#include "policy/yaml.h"

/* One item of `allow`, or one endpoint. Each of its paths becomes a rule of its own. */
struct network_item {
    struct network_rule rule;
    struct network_endpoint endpoint;
    const struct yaml_node *paths;
    bool has_host, has_ports, has_methods;
    bool is_wish, is_endpoint;
};

typedef int network_read_key(const struct yaml *yaml, const struct yaml_node *value,
                             struct network_item *item, error *err);

struct network_keys {
    const struct network_key {
        const char *name;
        network_read_key *read;
    } * list;
    unsigned count;
    const char *names; /* of all, for messages */
};

/* Reads a mapping; no key may be there twice. */
int network_read_item(const struct yaml *yaml, const struct yaml_node *value,
                      const struct network_keys *keys, struct network_item *item, error *err);

network_read_key network_read_methods; /* "[GET, HEAD]" */
network_read_key network_read_paths;

/* A whole number from 1 to `max`. */
int network_read_number(const struct yaml *yaml, const struct yaml_node *value, unsigned long max,
                        unsigned long *ret_number, error *err);

/* Adds one rule, or one for each path. */
int network_add_rules(const struct yaml *yaml, const struct yaml_node *value,
                      const struct network_item *item, struct network_policy *policy, error *err);
