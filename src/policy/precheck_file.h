/* precheck_file.h - the key `precheck` of a policy file. For policy_file.c only. */
#pragma once

#include "policy/precheck.h"
#include "policy/yaml.h"

/* The line of each statement, for explain.h; 0: none. */
struct precheck_lines {
    int rules[CHECK_RULES];
    int modules[PRECHECK_MODULES_MAX]; /* in the order of precheck.modules */
};

int precheck_file_read(const struct yaml *yaml, const struct yaml_node *value,
                       struct precheck *ret_precheck, struct precheck_lines *ret_lines, error *err);
