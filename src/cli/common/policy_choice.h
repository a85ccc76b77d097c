/* policy_choice.h - the policy of a call, where no daemon is asked. */
#pragma once

#include "client/client.h"
#include "policy/policy_origins.h"

/* The policy of calls that name none: as the settings of this host say, or by the templates of a
 * state folder (NULL: the usual one). Borrowed for good. */
const char *policy_by_default(const char *state);

/* Loads the policy of this name; NULL: the default one. `ret_origins` may be NULL.
 * Fails  as policy_load() */
int policy_choose(const char *name, const char *state, struct policy *ret_policy,
                  struct policy_origins *ret_origins, error *err);

/* Says on stderr that GLOVEBOX_POLICIES is set and that a daemon has policies of its own: it would
 * have been another policy. */
void tell_unused_policies(const glb_client *client);

/* The template of a policy, which a private daemon had better start first; NULL: not known.
 * Borrowed until the next call. */
const char *policy_template(const char *name, const char *state);
