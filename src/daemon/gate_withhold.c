/* gate_withhold.c - outputs that a policy does not hand over unless they are what was expected of
 * them (`on_fault: withhold`). Until the verdict is there nobody is told any of it: events of the
 * run say nothing of it, and its artifacts lie in the blob store as nobody's. */
#include "daemon/gate.h"

#include "daemon/run.h"

#include <stdio.h>

int gate_allows_session(const struct policy *policy, error *err)
{
    if (!policy->expect.needs.artifacts)
        return 0;
    return fail(err, ERR_BAD_REQUEST,
                "policy '%s' expects artifacts (expect.artifacts or others), and a session leaves "
                "none: its files stay in it; use runs, or choose another policy",
                policy->name);
}

int gate_lets_out(const struct policy *policy, const char *what, error *err)
{
    if (policy->expect.on_fault != ON_FAULT_WITHHOLD || !policy->expect.text[0])
        return 0;
    return fail(err, ERR_POLICY,
                "policy '%s' withholds what is not what was expected, and nobody compares %s of a "
                "session; use cells in a context, or runs, instead",
                policy->name, what);
}

bool gate_holds(const struct run *run)
{
    return run->gate && run->gate->withholds && !run->gate->is_released;
}

const char *gate_owner(const struct run *run)
{
    return gate_holds(run) ? run->gate->owner : run->account->owner;
}

static void release(struct run *run)
{
    struct gate *gate = run->gate;
    error err;
    for (size_t i = 0; i < run->harvest.artifact_count; i++)
        if (blob_hand_over(run->runs->blobs, gate->owner, run->harvest.artifacts[i].sha256,
                           run->account->owner, &err) < 0) {
            gate_give_up(&gate->outcome, err.text);
            return;
        }
    run->harvest.owner = run->account->owner;
    gate->is_released = true;
}

void gate_settle(struct run *run)
{
    struct gate *gate = run->gate;
    if (!gate_holds(run))
        return;
    if (gate->outcome.verdict == GATE_PASSED)
        release(run);
    for (size_t i = 0; i < run->harvest.artifact_count && !gate->is_released; i++)
        blob_forget(run->runs->blobs, gate->owner, run->harvest.artifacts[i].sha256);
}

bool gate_has_withheld(const struct run *run)
{
    return gate_holds(run) && run->started_us != 0;
}

void gate_print_withheld(const struct run *run, char *text, size_t size)
{
    (void) snprintf(
        text, size,
        "policy '%s' hands an output over only if it is what was expected: stdout, "
        "stderr, results, the error and artifacts are withheld; gate.findings says what "
        "is not so, and the receipt has their digests",
        run->spec.policy->name);
}
