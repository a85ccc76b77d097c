/* explain.h - what a policy says, statement by statement, and which line of which file says it. */
#pragma once

#include "policy/policy_origins.h"

struct policy_statement {
    const char *key, *value; /* "limits.wall", "10s"; borrowed for the call */
    struct policy_origin origin;
};

/* Calls for each: template, languages, network, limits, pre-check, approval, expectations. */
void policy_each_statement(const struct policy *policy, const struct policy_origins *origins,
                           void (*each)(void *context, const struct policy_statement *statement),
                           void *context);

/* What the pre-check found, as results name it. */
struct policy_finding {
    const char *rule, *decision, *subject;
};

/* Which line decides about a finding: of the list that names the module, of the rule, or of
 * modules.others. */
struct policy_origin policy_origin_of_finding(const struct policy *policy,
                                              const struct policy_origins *origins,
                                              const struct policy_finding *finding);

/* "careful.yaml:4", or that it is so by itself. */
enum { POLICY_ORIGIN_SIZE = POLICY_LABEL_SIZE + 16 };
void policy_origin_print(const struct policy_origins *origins, struct policy_origin origin,
                         char ret_text[POLICY_ORIGIN_SIZE]);
