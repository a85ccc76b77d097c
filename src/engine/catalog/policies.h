/* policies.h - the policies of this daemon. */
#pragma once

#include "base/error.h"
#include "policy/policy.h"

#include <stddef.h>

struct policies {
    size_t count;
    struct policy_row **rows; /* never freed, since runs and sessions point to granted policies */
    struct policy_row *retired;
    uint64_t reloads;             /* reloads that changed something, or may have */
    char usual[POLICY_NAME_SIZE]; /* for requests that name none; "": not set */
    struct {
        int64_t at_ms; /* since 1970; 0: it was accepted, or there was none */
        error cause;
    } refused; /* the last reload, because of its settings or a policy */
};

/* Loads every policy of a search path. A faulty one does not stop the others: it is logged, and a
 * request that names it gets its error. */
int policies_load(struct policies *policies, const char *path, error *err);
/* Reads the files again. A policy that has not changed remains the same object; one that has
 * changed is replaced, and the old object remains for runs and sessions that were granted it. Gives
 * in `text` what changed: "data changed, mine added". Fails  if any file is faulty: then nothing is
 * changed. */
int policies_reload(struct policies *policies, const char *path, char *text, size_t size,
                    error *err);
void policies_done(struct policies *policies);

/* What an operator should repair: the last reload, if it was refused, and each policy whose file is
 * faulty. One line each. */
void policies_each_fault(const struct policies *policies,
                         void (*each)(void *context, const char *text), void *context);

/* Fails  ERR_NOT_FOUND  naming those that exist; ERR_UNAVAILABLE  its file is faulty. */
int policies_find(const struct policies *policies, const char *name,
                  const struct policy **ret_policy, error *err);

/* The policy at `index`, NULL if its file is faulty. */
const struct policy *policies_at(const struct policies *policies, size_t index);
