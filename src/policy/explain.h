/* explain.h - lists the statements of a policy, each with the file and line that it comes from. */
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

/* A finding of the pre-check, as in results. */
struct policy_finding {
    const char *rule, *decision, *subject;
};

/* The line that decides about a finding: of a module, of the rule, or modules.others. */
struct policy_origin policy_origin_of_finding(const struct policy *policy,
                                              const struct policy_origins *origins,
                                              const struct policy_finding *finding);

/* "careful.yaml:4"; "by itself" if no file says it. */
enum { POLICY_ORIGIN_SIZE = POLICY_LABEL_SIZE + 16 };
void policy_origin_print(const struct policy_origins *origins, struct policy_origin origin,
                         char ret_text[POLICY_ORIGIN_SIZE]);
