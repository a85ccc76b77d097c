/* approval_file.h - the key `approval` of a policy file. */
#pragma once

#include "policy/policy_origins.h"
#include "policy/yaml.h"

/* The line of each part; 0: it is missing. */
struct approval_lines {
    int parts[APPROVAL_PARTS];
};

/* Fails  ERR_BAD_REQUEST  with the place, the cause and the fix. */
int approval_file_read(const struct yaml *yaml, const struct yaml_node *value,
                       struct policy_approval *ret_approval, struct approval_lines *ret_lines,
                       error *err);
