/* policy_permits.h - what a policy permits besides its limits: sessions, programs in them, outputs
 * that is not compared; and what a person is asked about. */
#pragma once

#include "policy/policy.h"

/* Whether outputs that do not match the expectations, or were not compared, are withheld. */
bool policy_withholds(const struct policy *policy);

/* Can what the policy expects be found in the cells of a session?
 * Fails  ERR_BAD_REQUEST  it expects artifacts, and cells leave none */
int policy_permits_session(const struct policy *policy, error *err);

/* May `what` leave a session beside the results of its cells? It is not compared.
 * Fails  ERR_POLICY  the policy withholds */
int policy_permits_uncompared(const struct policy *policy, const char *what, error *err);

/* May programs be started in a session? Nothing can check what a command is going to do.
 * Fails  ERR_POLICY  the policy wants code to be checked; or as policy_permits_uncompared() */
int policy_permits_programs(const struct policy *policy, error *err);

/* Why a person is asked about what was granted `limits` and `network`: bits of policy_asks. `found`
 * is what the pre-check says: ASKS_WARNING or ASKS_CHECK, or 0. */
uint32_t policy_asks_about(const struct policy *policy, const struct limits *limits,
                           enum policy_network network, uint32_t found);
