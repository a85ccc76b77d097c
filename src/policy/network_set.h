/* network_set.h - a named set of network rules for policies, in a file sets/NAME.yaml in a folder
 * of the search path of policies.
 *
 *     name: pip
 *     description: what pip of this host asks
 *     allow: [{host: mirror.example.org, ports: [443]}]
 *     env: {PIP_INDEX_URL: "https://mirror.example.org/simple"} */
#pragma once

#include "policy/policy.h"

struct network_set {
    char name[NETWORK_SET_NAME_SIZE];
    char description[POLICY_DESCRIPTION_SIZE];
    struct network_policy route; /* its rules only */
    size_t variable_count;
    struct policy_variable variables[POLICY_VARIABLES_MAX];
};

/* Loads the set `name`.
 * Fails  ERR_NOT_FOUND    no folder has it
 *        ERR_BAD_REQUEST  ".../sets/pip.yaml:3:5: cause; fix" */
int network_set_load(const char *path, const char *name, struct network_set *ret_set, error *err);

/* Adds the rules of the set, which is number `index` of the policy's sets.
 * Fails  ERR_BAD_REQUEST  there are too many rules or ports */
int network_set_add(const struct network_set *set, unsigned index, struct network_policy *policy,
                    error *err);
