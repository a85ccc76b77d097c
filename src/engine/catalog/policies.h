/* policies.h - the policies that this daemon was started with. */
#pragma once

#include "base/error.h"
#include "policy/policy.h"

#include <stddef.h>

struct policies {
    size_t count;
    struct policy_row **rows; /* each its own object, kept for good: granted ones are pointed to */
    struct policy_row *retired;
    uint64_t reloads;             /* that changed something, or may have */
    char usual[POLICY_NAME_SIZE]; /* of requests that name none: run_plan_default_policy(); "":
                                     none was given */
    struct {
        int64_t at_ms; /* since 1970; 0: it was taken, or there was none */
        error cause;
    } refused; /* the last reload, for its settings or for a policy */
};

/* Loads every policy of a search path. One that is wrong does not stop the others: it is logged,
 * and a request that names it gets that error. */
int policies_load(struct policies *policies, const char *path, error *err);
/* Reads the files again. A policy that has not changed stays the object that it is; one that has
 * changed takes the place of the old one, which stays for runs and sessions that were granted it.
 * Gives  in `text` what changed: "data changed, mine added". Fails  if any file is wrong: then
 * nothing is changed. */
int policies_reload(struct policies *policies, const char *path, char *text, size_t size,
                    error *err);
void policies_done(struct policies *policies);

/* What an operator should mend: the last reload, if it was refused, and each policy whose file is
 * wrong. One line each. */
void policies_each_fault(const struct policies *policies,
                         void (*each)(void *context, const char *text), void *context);

/* Fails  ERR_NOT_FOUND  naming those that exist; ERR_UNAVAILABLE  if its file is wrong. */
int policies_find(const struct policies *policies, const char *name,
                  const struct policy **ret_policy, error *err);

/* The policy at `index`, NULL if its file is wrong. */
const struct policy *policies_at(const struct policies *policies, size_t index);
