/* approval_stage.c - requests the approval that a run needs, and ends the run if it does not get
 * one. */
#include "engine/approval/approval_card.h"
#include "engine/approval/approvals.h"
#include "engine/run/run.h"
#include "policy/policy_permits.h"

#include <stdio.h>

static uint32_t reasons_of(const struct run *run, uint32_t found)
{
    const struct run_spec *plan = &run->plan;
    return policy_asks_about(plan->policy, &plan->limits, plan->network, found);
}

static void copy(char *to, size_t size, const char *text)
{
    (void) snprintf(to, size, "%s", text ? text : "");
}

static int fill(const struct run *run, const struct run_request *request, uint32_t reasons,
                struct approval *approval, error *err)
{
    const struct policy *policy = run->plan.policy;
    const struct account *asker = request->account ? request->account : run->account;
    const struct api_key *key = &asker->key;
    *approval = (struct approval){ .reaches = approval_scopes(&policy->approval),
                                   .reasons = reasons,
                                   .is_out_of_band = policy->approval.is_out_of_band };
    copy(approval->asker, sizeof approval->asker, key->id);
    copy(approval->tenant, sizeof approval->tenant, key->tenant);
    copy(approval->policy, sizeof approval->policy, policy->name);
    copy(approval->policy_digest, sizeof approval->policy_digest, policy->digest);
    copy(approval->session, sizeof approval->session, run->session);
    run_code_hash(run, approval->sha256);
    return approval_bind(run, request, approval->binding, err);
}

static void tell(struct run *run, int answer, const struct approval *approval)
{
    copy(run->approval, sizeof run->approval, approval->id);
    run->evidence.pending = answer == APPROVAL_PENDING;
    run->evidence.denied = answer == APPROVAL_DENIED;
    if (answer == APPROVAL_PENDING && !approvals_can_wait(run->runs->approvals))
        (void) fail(
            &run->fault, ERR_POLICY,
            "policy %s asks a person first, and there is no decision; a run without a daemon "
            "cannot wait: start glovebox serve, and run it again",
            approval->policy);
    else if (answer == APPROVAL_PENDING)
        (void) fail(&run->fault, ERR_POLICY,
                    "policy %s asks a person first: %s waits for a decision; when it is approved, "
                    "send the same request again",
                    approval->policy, approval->id);
    else if (answer == APPROVAL_DENIED)
        (void) fail(&run->fault, ERR_POLICY, "approval %s was not given: %.150s", approval->id,
                    approval->reason[0] ? approval->reason : "no reason was given");
}

static int ask_if(struct run *run, const struct run_request *request, uint32_t reasons, error *err)
{
    struct approval_question question = { .named = request->approval, .run = run->id };
    struct approval approval;
    auto_bytes card = { 0 };
    if (reasons == 0)
        return 0;
    if (!run->runs->approvals)
        return fail(err, ERR_POLICY,
                    "policy %s asks a person first, and no person can be asked here",
                    run->plan.policy->name);
    question.expires_in_ms = approval_expires_ms(&run->plan.policy->approval);
    question.card = &card;
    if (fill(run, request, reasons, &question.approval, err) < 0 ||
        approval_card_write(run, request, reasons, &card, err) < 0)
        return -1;
    int answer = approvals_ask(run->runs->approvals, &question, &approval, err);
    if (answer < 0)
        return -1;
    tell(run, answer, &approval);
    return 0;
}

int run_ask(struct run *run, const struct run_request *request, error *err)
{
    return ask_if(run, request, reasons_of(run, 0), err);
}

bool run_ask_checked(struct run *run, const struct run_request *request)
{
    static const uint32_t found[CHECK_DECISIONS] = {
        [CHECK_WARN] = ASKS_WARNING, [CHECK_ASK] = ASKS_WARNING | ASKS_CHECK
    };
    enum check_decision decision = check_decision_of(run);
    if (decision == CHECK_DENY)
        return false; /* its findings need no approval */
    error err;
    if (ask_if(run, request, reasons_of(run, found[decision]), &err) < 0) {
        run->fault = err;
        return false;
    }
    return !run_is_held(run);
}
