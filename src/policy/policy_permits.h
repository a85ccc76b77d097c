/* policy_permits.h - what a policy permits besides its limits: sessions, programs in them, outputs
 * that cannot be checked; and when approval is needed. */
#pragma once

#include "policy/policy.h"

/* Are outputs withheld that do not meet the expectations, or were not checked? */
bool policy_withholds(const struct policy *policy);

/* Can cells of a session meet the expectations of the policy?
 * Fails  ERR_BAD_REQUEST  it expects artifacts, and cells leave none */
int policy_permits_session(const struct policy *policy, error *err);

/* May `what` leave a session, although it cannot be checked, unlike the results of cells?
 * Fails  ERR_POLICY  the policy withholds */
int policy_permits_uncompared(const struct policy *policy, const char *what, error *err);

/* May programs be started in a session? A command cannot be checked before it runs.
 * Fails  ERR_POLICY  the policy requires checks of code; or as policy_permits_uncompared() */
int policy_permits_programs(const struct policy *policy, error *err);

/* Why a run with these granted limits and network needs approval: bits of policy_asks. `found` is
 * the result of the pre-check: ASKS_WARNING or ASKS_CHECK, or 0. */
uint32_t policy_asks_about(const struct policy *policy, const struct limits *limits,
                           enum policy_network network, uint32_t found);
