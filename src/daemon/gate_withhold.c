/* gate_withhold.c - outputs that a policy does not hand over unless they are what was expected of
 * them (`on_fault: withhold`). Until the verdict is there nobody is told any of it: events of the
 * run say nothing of it, and its artifacts lie in the blob store as nobody's. */
#include "daemon/gate.h"

#include "daemon/receipts.h"
#include "daemon/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

struct blob_owner gate_owner(const struct run *run)
{
    const char *payer = run->account->owner;
    return (struct blob_owner){ gate_holds(run) ? run->gate->owner : payer, payer };
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
    run->harvest.owner.name = run->account->owner;
    gate->is_released = true;
}

/* "sha256:" and the hash of the path: who knows the name can show that it was this one. */
static void veil_path(struct artifact *artifact)
{
    char hash[SHA256_TEXT_SIZE];
    char *veiled = NULL;
    fact_hash(artifact->path, strlen(artifact->path), hash);
    if (asprintf(&veiled, "sha256:%s", hash) < 0) {
        artifact->path[0] = '\0';
        return;
    }
    free(artifact->path);
    artifact->path = veiled;
}

/* Names of files are words of the program too, and stand in receipts and denials. */
static void withhold(struct run *run)
{
    struct denials *denials = &run->harvest.denials;
    for (size_t i = 0; i < run->harvest.artifact_count; i++) {
        struct artifact *artifact = &run->harvest.artifacts[i];
        blob_forget(run->runs->blobs, run->gate->owner, artifact->sha256);
        veil_path(artifact);
    }
    for (size_t i = 0; i < denials->count; i++)
        if (strcmp(denials->rows[i].layer, "artifact") == 0)
            (void) snprintf(denials->rows[i].target, sizeof denials->rows[i].target, "a file");
}

void gate_settle(struct run *run)
{
    if (!gate_holds(run))
        return;
    if (run->gate->outcome.verdict == GATE_PASSED)
        release(run);
    if (!run->gate->is_released)
        withhold(run);
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
