/* policy_verbs.h - the verbs of `glovebox policy` that have files of their own. argv[0] is the
 * verb; they give the exit status. */
#pragma once

#include "cli/options.h"
#include "policy/policy.h"

int policy_explain(int argc, char **argv); /* what would happen to code, and which line says so */
int policy_test(int argc, char **argv);    /* a file of cases, with what is expected of each */

extern const struct option_table policy_explain_option_table;
extern const struct option_table policy_test_option_table;

/* What the policy holds, for people, and of that where each endpoint leads. */
void policy_print(const struct policy *policy);
void policy_print_endpoints(const struct policy *policy);
