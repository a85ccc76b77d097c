/* approval_file.h - the key `approval` of a policy file. */
#pragma once

#include "model/policy.h"
#include "model/yaml.h"

/* Fails  ERR_BAD_REQUEST  with the place, the cause and the fix. */
int approval_file_read(const struct yaml *yaml, const struct yaml_node *value,
                       struct policy_approval *ret_approval, error *err);
