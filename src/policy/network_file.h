/* network_file.h - the key `network` of a policy file, if it is a mapping. */
#pragma once

#include "policy/network_policy.h"
#include "policy/yaml.h"

/* Fails  ERR_BAD_REQUEST  with the place, the cause and the fix. */
int network_file_read(const struct yaml *yaml, const struct yaml_node *value,
                      struct network_policy *ret_policy, error *err);

/* Reads its key `allow`, which sets have as well. Adds to the rules of the policy. */
int network_file_read_allow(const struct yaml *yaml, const struct yaml_node *value,
                            struct network_policy *policy, error *err);

/* The same for a request: endpoints are named as hosts, and what is not given stays 0. */
int network_wish_file_read(const struct yaml *yaml, const struct yaml_node *value,
                           struct network_policy *ret_policy, error *err);
