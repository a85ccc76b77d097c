/* expect_file.h - the key `expect` of a policy file: what the policy expects of every output, in
 * the form of requests (expect.h), and what happens to an output that does not meet it. */
#pragma once

#include "policy/policy.h"
#include "policy/yaml.h"

/* Gives  *ret_expect with a list of one expectation, or none; *ret_line, the line of on_fault, or
 * 0. Fails  ERR_BAD_REQUEST  with the place, the cause and the fix. */
int expect_file_read(const struct yaml *yaml, const struct yaml_node *value,
                     struct policy_expect *ret_expect, int *ret_line, error *err);

/* Adds the expectations of a file to those of the files that it extends: all must be met.
 * Fails  ERR_BAD_REQUEST  without a position, which the caller adds. */
int expect_merge(struct policy_expect *expect, const struct policy_expect *over, error *err);
