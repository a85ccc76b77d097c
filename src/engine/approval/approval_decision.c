/* approval_decision.c - who may decide on an approval, and who may withdraw it. */
#include "engine/approval/approvals_internal.h"

#include "base/clock.h"
#include "engine/observe/log.h"

#include <stdio.h>
#include <string.h>

enum { UNTIL_MAX_DAYS = 30 };
static const int64_t day_ms = INT64_C(24) * 3600 * 1000;

bool approval_decides_for_owner(const struct api_key *key)
{
    const uint32_t needed = SCOPE_APPROVE | SCOPE_ADMIN;
    return key->id[0] != '\0' && (key->scopes & needed) == needed;
}

bool approval_is_seen(const struct account *account, const struct approval *approval)
{
    const struct api_key *key = &account->key;
    if (key->id[0] == '\0')
        return true; /* the owner of the daemon */
    if (approval->asker[0] == '\0')
        return approval_decides_for_owner(key);
    if (strcmp(key->tenant, approval->tenant) != 0)
        return false;
    return (key->scopes & SCOPE_APPROVE) || strcmp(key->id, approval->asker) == 0;
}

int approvals_find(struct approvals *approvals, const struct account *account, const char *id,
                   struct approval *ret_approval, error *err)
{
    struct approval like = { 0 };
    if (approvals_expire_due(approvals, err) < 0)
        return -1;
    (void) snprintf(like.id, sizeof like.id, "%s", id);
    int found = approval_store_find(approvals->store, BY_ID, &like, ret_approval, err);
    if (found < 0)
        return -1;
    if (found == 0 || strcmp(ret_approval->id, id) != 0 || !approval_is_seen(account, ret_approval))
        return fail(err, ERR_NOT_FOUND, "no approval has the id '%.60s'", id);
    approval_show_lapsed(approvals, ret_approval);
    return 0;
}

/* A key must not decide on its own request. The owner of the daemon has no key, and may be both a
 * program that requests and a person at a terminal: a policy can forbid that (by: out_of_band). */
static int check_decider(const struct account *account, const struct approval *approval, error *err)
{
    const char *id = account->key.id;
    bool is_asker = strcmp(id, approval->asker) == 0;
    if (is_asker && id[0] != '\0')
        return fail(err, ERR_FORBIDDEN,
                    "key %s has requested this itself; use another key with scope approve", id);
    if (is_asker && approval->is_out_of_band)
        return fail(
            err, ERR_FORBIDDEN,
            "policy %s does not accept the owner's decision (by: out_of_band): use a key that has "
            "the scopes approve and admin",
            approval->policy);
    return 0;
}

static int fill_decision(const struct approval_decision *decision, struct approval *approval,
                         error *err)
{
    int64_t waits_ms = approval->expires_ms - approval->asked_ms, now = wall_clock_ms();
    approval->state = decision->approves ? APPROVAL_APPROVED : APPROVAL_DENIED;
    approval->decided_ms = now;
    approval->until_ms = decision->until_ms ? decision->until_ms : now + waits_ms;
    (void) snprintf(approval->reason, sizeof approval->reason, "%s",
                    decision->reason ? decision->reason : "");
    if (!decision->approves)
        return 0;
    approval->reach = decision->reach ? decision->reach : REACH_ONCE;
    if (!(approval->reach & approval->reaches))
        return fail(err, ERR_FORBIDDEN, "policy %s allows no approval of scope %s",
                    approval->policy, approval_scope_name(approval->reach));
    if (approval->reach == REACH_SESSION && !approval->session[0])
        return fail(err, ERR_BAD_REQUEST, "this was not requested in a session");
    if (approval->until_ms <= now || approval->until_ms - now > UNTIL_MAX_DAYS * day_ms)
        return fail(err, ERR_BAD_REQUEST, "an approval must end within %d days from now",
                    UNTIL_MAX_DAYS);
    return 0;
}

int approvals_decide(struct approvals *approvals, const struct approval_decision *decision,
                     struct approval *ret_approval, error *err)
{
    const struct account *account = decision->account;
    const char *id = decision->id;
    if (approvals_find(approvals, account, id, ret_approval, err) < 0 ||
        check_decider(account, ret_approval, err) < 0)
        return -1;
    if (ret_approval->state != APPROVAL_PENDING)
        return fail(err, ERR_CONFLICT, "approval %s is %s already", id,
                    approval_state_name(ret_approval->state));
    if (fill_decision(decision, ret_approval, err) < 0)
        return -1;
    (void) snprintf(ret_approval->approver, sizeof ret_approval->approver, "%s", account->key.id);
    const char *event = decision->approves ? "approval.approved" : "approval.denied";
    if (approval_audit(approvals, event, ret_approval, err) < 0)
        return -1;
    int changed = approval_store_change(approvals->store, ret_approval, APPROVAL_PENDING, err);
    if (changed == 0)
        return fail(err, ERR_CONFLICT, "approval %s is decided already", id);
    if (changed < 0)
        return -1;
    log_fields(decision->approves ? LOGGED_APPROVAL_APPROVED : LOGGED_APPROVAL_DENIED, LOG_NOTICE,
               LOG_FIELDS(TEXT("approval", id), TEXT("key", account->key.id)));
    approval_notify(approvals, "decided", ret_approval);
    approvals_tell(approvals);
    return 0;
}

/* Any key that may see an approval may withdraw it, also the asker's: that can only remove
 * rights. */
int approvals_revoke(struct approvals *approvals, const struct approval_decision *decision,
                     struct approval *ret_approval, error *err)
{
    const char *by = decision->account->key.id;
    if (approvals_find(approvals, decision->account, decision->id, ret_approval, err) < 0)
        return -1;
    if (ret_approval->state != APPROVAL_APPROVED)
        return fail(err, ERR_CONFLICT, "approval %s is %s%s", decision->id,
                    approval_state_name(ret_approval->state),
                    ret_approval->state == APPROVAL_PENDING ? ": deny it instead" : " already");
    ret_approval->state = APPROVAL_REVOKED;
    ret_approval->decided_ms = ret_approval->until_ms = wall_clock_ms();
    (void) snprintf(ret_approval->approver, sizeof ret_approval->approver, "%s", by);
    (void) snprintf(ret_approval->reason, sizeof ret_approval->reason, "%s",
                    decision->reason ? decision->reason : "");
    if (approval_audit(approvals, "approval.revoked", ret_approval, err) < 0)
        return -1;
    int changed = approval_store_change(approvals->store, ret_approval, APPROVAL_APPROVED, err);
    if (changed == 0)
        return fail(err, ERR_CONFLICT, "approval %s is used already", decision->id);
    if (changed < 0)
        return -1;
    log_event(APPROVAL_REVOKED, TEXT("approval", decision->id), TEXT("key", by));
    approval_notify(approvals, "decided", ret_approval);
    approvals_tell(approvals);
    return 0;
}
