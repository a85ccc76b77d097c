/* policy_permits.c - see policy_permits.h. */
#include "policy/policy_permits.h"

#include "base/table.h"

bool policy_withholds(const struct policy *policy)
{
    return policy->expect.on_fault == ON_FAULT_WITHHOLD && policy->expect.text[0];
}

int policy_permits_session(const struct policy *policy, error *err)
{
    if (!policy->expect.needs.artifacts)
        return 0;
    return fail(err, ERR_BAD_REQUEST,
                "policy '%s' expects artifacts (expect.artifacts or others), and a session leaves "
                "none: its files stay in it; use runs, or choose another policy",
                policy->name);
}

int policy_permits_uncompared(const struct policy *policy, const char *what, error *err)
{
    if (!policy_withholds(policy))
        return 0;
    return fail(err, ERR_POLICY,
                "policy '%s' withholds output that is not as expected, and %s of a session "
                "cannot be compared; use cells in a context, or runs, instead",
                policy->name, what);
}

int policy_permits_programs(const struct policy *policy, error *err)
{
    const struct precheck *precheck = &policy->precheck;
    if (precheck->is_on && precheck_decide(precheck, CHECK_unchecked, NULL) >= CHECK_ASK)
        return fail(err, ERR_POLICY,
                    "policy %s wants code to be checked before it runs, and a command cannot be; "
                    "run cells in a context instead",
                    policy->name);
    return policy_permits_uncompared(policy, "programs", err);
}

uint32_t policy_asks_about(const struct policy *policy, const struct limits *limits,
                           enum policy_network network, uint32_t found)
{
    uint32_t asks = ASKS_ALWAYS | found;
    if (network == POLICY_NETWORK_RULES)
        asks |= ASKS_NETWORK;
    for_each(row, limit_rows) {
        enum limit_id id = (enum limit_id)(row - limit_rows);
        if (limit_exceeds(id, limit_get(limits, id), limit_get(&policy->limits, id)))
            asks |= ASKS_OVER_LIMITS;
    }
    return (found & ASKS_CHECK) | (policy->approval.when & asks);
}
