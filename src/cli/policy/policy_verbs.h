/* policy_verbs.h - verbs of `glovebox policy` with files of their own. argv[0] is the verb; each
 * returns the exit status. */
#pragma once

#include "cli/options.h"
#include "policy/policy.h"

int policy_explain(int argc, char **argv); /* what a policy does, and which line says so */
int policy_test(int argc, char **argv);    /* runs a file of cases with expectations */

extern const struct option_table policy_explain_option_table;
extern const struct option_table policy_test_option_table;

/* Print the whole policy as text, or the destination of each endpoint. */
void policy_print(const struct policy *policy);
void policy_print_endpoints(const struct policy *policy);
