/* expect_file.h - the key `expect` of a policy file: what the policy expects of every output, in
 * the form in which requests have it (expect.h), and what happens to an output that is not so. */
#pragma once

#include "policy/policy.h"
#include "policy/yaml.h"

/* Gives  *ret_expect with a list of one expectation, or none; *ret_line of its on_fault, 0: it has
 * none.
 * Fails  ERR_BAD_REQUEST  with the place, the cause and the fix. */
int expect_file_read(const struct yaml *yaml, const struct yaml_node *value,
                     struct policy_expect *ret_expect, int *ret_line, error *err);

/* Adds what one file says to what those say that it extends: all of it holds.
 * Fails  ERR_BAD_REQUEST  in words, for the caller to put the place before them. */
int expect_merge(struct policy_expect *expect, const struct policy_expect *over, error *err);
