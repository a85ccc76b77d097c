/* policies.h - the policies that this daemon was started with. */
#pragma once

#include "base/error.h"
#include "model/policy.h"

#include <stddef.h>

struct policies {
    size_t count;
    struct policy_row *rows;
};

/* Loads every policy of a search path. One that is wrong does not stop the others: it is logged,
 * and whoever asks for it is told what is wrong. */
int policies_load(struct policies *policies, const char *path, error *err);
void policies_done(struct policies *policies);

/* Fails  ERR_NOT_FOUND  naming those that exist; ERR_UNAVAILABLE  if its file is wrong. */
int policies_find(const struct policies *policies, const char *name,
                  const struct policy **ret_policy, error *err);

/* The policy at `index`, NULL if its file is wrong. */
const struct policy *policies_at(const struct policies *policies, size_t index);
