/* network_endpoints.h - the key `network.endpoints` of a policy file. */
#pragma once

#include "policy/network_policy.h"
#include "policy/yaml.h"

/* Adds each endpoint, and its rules, to `policy`.
 * Fails  ERR_BAD_REQUEST  with the place, the cause and the fix. */
int network_endpoints_read(const struct yaml *yaml, const struct yaml_node *value,
                           struct network_policy *policy, error *err);
