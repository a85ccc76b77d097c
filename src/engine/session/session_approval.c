/* session_approval.c - whether a program may start in a session whose policy needs approvals. */
#include "engine/approval/approvals.h"
#include "engine/session/contexts.h"
#include "engine/session/session_internal.h"

#include <stdio.h>

int session_check_approval(const struct session *session, const struct account *asker,
                           struct approvals *approvals, error *err)
{
    const struct policy *policy = session->plan.policy;
    const struct api_key *key = &asker->key;
    struct approval place = { 0 };
    (void) snprintf(place.asker, sizeof place.asker, "%s", key->id);
    (void) snprintf(place.tenant, sizeof place.tenant, "%s", key->tenant);
    (void) snprintf(place.policy_digest, sizeof place.policy_digest, "%s", policy->digest);
    (void) snprintf(place.session, sizeof place.session, "%s", session->id);
    if (policy->approval.when == 0 || (approvals && approvals_cover(approvals, &place)))
        return 0;
    return fail(err, ERR_POLICY,
                "policy %s asks a person first: a program can be started here once a cell was "
                "approved with scope session",
                policy->name);
}
