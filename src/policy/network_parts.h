/* network_parts.h - what rules and endpoints of a policy file have in common. All fail with the
 * place, the cause and the fix. */
#pragma once

#include "policy/network_policy.h"
#include "policy/yaml.h"

/* A whole number from 1 to `most`. */
int network_read_number(const struct yaml *yaml, const struct yaml_node *value, unsigned long max,
                        unsigned long *ret_number, error *err);

/* "[GET, HEAD]": adds bits to *methods. */
int network_read_methods(const struct yaml *yaml, const struct yaml_node *value, uint32_t *methods,
                         error *err);

/* A list of paths that rules can hold. */
int network_check_paths(const struct yaml *yaml, const struct yaml_node *value, error *err);

int network_add_rule(const struct yaml *yaml, const struct yaml_node *value,
                     const struct network_rule *rule, struct network_policy *policy, error *err);
