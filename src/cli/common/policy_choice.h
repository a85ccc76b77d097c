/* policy_choice.h - the policy of a call, found without a daemon. */
#pragma once

#include "client/client.h"
#include "policy/policy_origins.h"

/* The policy of calls that name none: by the settings of this host, or by the templates of a state
 * folder (NULL: the default). Borrowed; never freed. */
const char *policy_by_default(const char *state);

/* Loads the policy of this name; NULL: the default one. `ret_origins` may be NULL.
 * Fails  as policy_load() */
int policy_choose(const char *name, const char *state, struct policy *ret_policy,
                  struct policy_origins *ret_origins, error *err);

/* Warns on stderr if GLOVEBOX_POLICIES is set, since the daemon uses its own policies. */
void tell_unused_policies(const glb_client *client);

/* The template that a private daemon starts first; NULL: not known. Borrowed until the next call.
 */
const char *policy_template(const char *name, const char *state);
