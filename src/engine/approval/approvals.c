/* approvals.c - requests for approvals, their expiry, and that each step is in the log of receipts
 * before it takes effect. */
#include "engine/approval/approvals_internal.h"

#include "base/clock.h"
#include "base/list.h"
#include "engine/audit/audit_log.h"
#include "engine/observe/log.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PENDING_MAX = 64, FORGET_AFTER_DAYS = 30 };
enum {
    LOOK_MS = 500,        /* while something is pending */
    LOOK_IDLE_MS = 30000, /* while nothing is: an earlier daemon may have left some */
};
static const int64_t day_ms = INT64_C(24) * 3600 * 1000;

/* --- notifications ---------------------------------------------------------------------------- */

void approvals_listen(struct approvals *approvals, struct approval_listener *listener)
{
    listener->next = approvals->listeners;
    approvals->listeners = listener;
}

void approvals_unlisten(struct approvals *approvals, struct approval_listener *listener)
{
    (void) list_remove(approvals->listeners, listener, next);
}

void approvals_tell(struct approvals *approvals)
{
    for (struct approval_listener *at = approvals->listeners, *next; at; at = next) {
        next = at->next;
        at->changed(at->context);
    }
}

int approval_audit(struct approvals *approvals, const char *event, const struct approval *approval,
                   error *err)
{
    char binding[SHA256_TEXT_SIZE], code[OPENING_HEX_SIZE], request[OPENING_HEX_SIZE];
    if (!approvals->receipts)
        return 0;
    (void) sodium_bin2hex(binding, sizeof binding, approval->binding, sizeof approval->binding);
    receipts_commit(approvals->receipts, approval->id, "approval/code", approval->sha256, code);
    receipts_commit(approvals->receipts, approval->id, "approval/request", binding, request);
    const struct event_field fields[] = {
        { "approval", approval->id, 0 },
        { "approver",
          approval->decided_ms == 0       ? "nobody"
          : approval->approver[0] == '\0' ? "owner"
                                          : approval->approver,
          0 },
        { "asker", approval->asker[0] ? approval->asker : "owner", 0 },
        { "code", code, 0 },
        { "expires_ms", NULL, approval->expires_ms },
        { "policy", approval->policy_digest, 0 },
        { "request", request, 0 },
        { "run", approval->run, 0 },
        { "scope", approval->reach ? approval_scope_name(approval->reach) : "", 0 },
        { "session", approval->session, 0 },
        { "tenant", approval->tenant, 0 },
        { "until_ms", NULL, approval->until_ms },
        { 0 },
    };
    return audit_write(approvals->receipts, event, fields, err);
}

/* --- time ------------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer);

/* An approval without a decision in time is denied. Returns 1 if one was due. */
static int expire_one(struct approvals *approvals, int64_t now, error *err)
{
    struct approval due;
    const struct approval like = { .expires_ms = now };
    int found = approval_store_find(approvals->store, BY_DUE, &like, &due, err);
    if (found != 1)
        return found;
    due.state = APPROVAL_EXPIRED;
    (void) snprintf(due.reason, sizeof due.reason, "there was no decision in time");
    if (approval_audit(approvals, "approval.expired", &due, err) < 0)
        return -1;
    if (approval_store_change(approvals->store, &due, APPROVAL_PENDING, err) < 0)
        return -1;
    approval_notify(approvals, "expired", &due);
    return 1;
}

int approvals_expire_due(struct approvals *approvals, error *err)
{
    int64_t now = wall_clock_ms();
    int result;
    bool is_any = false;
    while ((result = expire_one(approvals, now, err)) == 1)
        is_any = true;
    if (is_any)
        approvals_tell(approvals);
    return result;
}

/* Without a state folder no approval outlives its run, and none needs the timer. */
static void look_in(struct approvals *approvals, uint64_t ms)
{
    if (approvals->outlive_runs && !uv_is_closing((const uv_handle_t *) &approvals->timer))
        (void) uv_timer_start(&approvals->timer, on_timer, ms, 0);
}

static bool is_any_pending(struct approvals *approvals)
{
    struct approval unused;
    const struct approval like = { .expires_ms = INT64_MAX };
    error err;
    return approval_store_find(approvals->store, BY_DUE, &like, &unused, &err) != 0;
}

static void on_timer(uv_timer_t *timer)
{
    struct approvals *approvals = timer->data;
    int64_t now = wall_clock_ms();
    error err;
    int result = approvals_expire_due(approvals, &err);
    if (result == 0 && now > approvals->forget_ms) {
        approvals->forget_ms = now + day_ms;
        result = approval_store_forget(approvals->store, now - FORGET_AFTER_DAYS * day_ms, &err);
    }
    if (result < 0)
        log_event(APPROVALS_NOT_EXPIRED, TEXT("cause", err.text));
    look_in(approvals, is_any_pending(approvals) ? LOOK_MS : LOOK_IDLE_MS);
}

int approvals_open(uv_loop_t *loop, const struct approvals_place *place,
                   struct approvals **ret_approvals, error *err)
{
    struct approvals *approvals = calloc(1, sizeof *approvals);
    if (!approvals)
        return fail(err, ERR_SYSTEM, "no memory for approvals");
    if (approval_store_open(place->state, &approvals->store, err) < 0) {
        free(approvals);
        return -1;
    }
    approvals->receipts = place->receipts;
    approvals->accounts = place->accounts;
    approvals->outlive_runs = place->state != NULL;
    approvals->notify_client = place->notify_client;
    approvals->page_url = place->page_url;
    approvals->timer.data = approvals;
    (void) uv_timer_init(loop, &approvals->timer);
    uv_unref((uv_handle_t *) &approvals->timer);
    look_in(approvals, LOOK_MS);
    *ret_approvals = approvals;
    return 0;
}

bool approvals_can_wait(const struct approvals *approvals)
{
    return approvals->outlive_runs;
}

void approvals_leave(struct approvals *approvals)
{
    if (approvals)
        uv_close((uv_handle_t *) &approvals->timer, NULL);
}

void approvals_close(struct approvals *approvals)
{
    if (!approvals)
        return;
    approval_store_close(approvals->store);
    free(approvals);
}

/* --- keys of approvers ------------------------------------------------------------------------ */

void approvals_key_name(const struct approvals *approvals, const char *id,
                        char ret_name[API_KEY_NAME_SIZE])
{
    const struct accounts *accounts = approvals->accounts;
    struct api_key key = { 0 };
    error unused;
    if (id[0] && accounts && accounts->store)
        (void) key_store_find(accounts->store, id, &key, &unused);
    memcpy(ret_name, key.name, sizeof key.name); /* also if it is no longer valid */
}

/* An approval is valid only while the approver's key is. */
static bool has_lapsed(const struct approvals *approvals, const struct approval *approval)
{
    const struct accounts *accounts = approvals->accounts;
    struct api_key key;
    error unused;
    return approval->state == APPROVAL_APPROVED && approval->approver[0] && accounts &&
           accounts->store &&
           key_store_find(accounts->store, approval->approver, &key, &unused) < 0;
}

static void lapse(struct approval *approval)
{
    approval->state = APPROVAL_REVOKED;
    (void) snprintf(approval->reason, sizeof approval->reason,
                    "the approver's key was revoked or has expired");
}

void approval_show_lapsed(const struct approvals *approvals, struct approval *approval)
{
    if (has_lapsed(approvals, approval))
        lapse(approval);
}

/* When this is noticed, it is written to the log. Returns 1 if the approval has lapsed. */
static int check_lapsed(struct approvals *approvals, struct approval *approval, error *err)
{
    if (!has_lapsed(approvals, approval))
        return 0;
    lapse(approval);
    return approval_audit(approvals, "approval.revoked", approval, err) < 0 ||
                   approval_store_change(approvals->store, approval, APPROVAL_APPROVED, err) < 0
               ? -1
               : 1;
}

/* --- asking ----------------------------------------------------------------------------------- */

/* Is the approval for this request? */
static int check_fits(const struct approval *approval, const struct approval *asked, error *err)
{
    if (strcmp(approval->tenant, asked->tenant) != 0)
        return fail(err, ERR_NOT_FOUND, "no approval has the id '%s'", approval->id);
    if (strcmp(approval->asker, asked->asker) != 0)
        return fail(err, ERR_FORBIDDEN, "approval %s was requested by another key", approval->id);
    bool is_wide = approval->reach == REACH_TIME || approval->reach == REACH_SESSION;
    bool fits = is_wide
                    ? strcmp(approval->policy_digest, asked->policy_digest) == 0 &&
                          (approval->reach == REACH_TIME ||
                           (asked->session[0] && strcmp(approval->session, asked->session) == 0))
                    : memcmp(approval->binding, asked->binding, APPROVAL_BINDING_SIZE) == 0;
    if (!fits)
        return fail(err, ERR_CONFLICT,
                    "approval %s is for another request: code, inputs, limits and policy must be "
                    "what they were when it was requested",
                    approval->id);
    return 0;
}

static int find_named(struct approvals *approvals, const struct approval_question *question,
                      struct approval *ret_approval, error *err)
{
    struct approval like = { 0 };
    (void) snprintf(like.id, sizeof like.id, "%s", question->named);
    int found = strcmp(like.id, question->named) == 0
                    ? approval_store_find(approvals->store, BY_ID, &like, ret_approval, err)
                    : 0;
    if (found < 0)
        return -1;
    if (found == 0)
        return fail(err, ERR_NOT_FOUND, "no approval has the id '%.60s'", question->named);
    if (check_fits(ret_approval, &question->approval, err) < 0)
        return -1;
    if (ret_approval->state == APPROVAL_USED)
        return fail(err, ERR_CONFLICT, "approval %s was used already, by %s", ret_approval->id,
                    ret_approval->run);
    if (check_lapsed(approvals, ret_approval, err) < 0)
        return -1;
    if (ret_approval->state == APPROVAL_REVOKED)
        return fail(err, ERR_CONFLICT, "approval %s was revoked: %.150s; request a new one",
                    ret_approval->id,
                    ret_approval->reason[0] ? ret_approval->reason : "no reason was given");
    if (ret_approval->state == APPROVAL_APPROVED && ret_approval->until_ms <= wall_clock_ms())
        return fail(err, ERR_CONFLICT, "approval %s has expired; ask again", ret_approval->id);
    return 1;
}

/* Finds an approval for a session or a time, by a key that is still valid. Returns 1, or 0. */
static int find_reach(struct approvals *approvals, const struct approval *asked,
                      struct approval *ret_approval, error *err)
{
    for (;;) {
        int found = approval_store_find(approvals->store, BY_REACH, asked, ret_approval, err);
        int lapsed = found == 1 ? check_lapsed(approvals, ret_approval, err) : 0;
        if (found < 0 || lapsed < 0)
            return -1;
        if (lapsed == 0)
            return found;
    }
}

/* Finds the newest one that applies to this request now. Returns 1, or 0: it must be requested. */
static int find_valid(struct approvals *approvals, const struct approval *asked,
                      struct approval *ret_approval, error *err)
{
    int64_t now = wall_clock_ms();
    int found = approval_store_find(approvals->store, BY_BINDING, asked, ret_approval, err);
    if (found < 0 || (found == 1 && check_lapsed(approvals, ret_approval, err) < 0))
        return -1;
    bool is_no = found && ret_approval->state == APPROVAL_DENIED && ret_approval->until_ms > now;
    bool is_open =
        found && (ret_approval->state == APPROVAL_PENDING ||
                  (ret_approval->state == APPROVAL_APPROVED && ret_approval->until_ms > now));
    if (is_no || is_open)
        return 1;
    return find_reach(approvals, asked, ret_approval, err);
}

/* A key may have no more waiting requests than places are left for others, so that another key
 * always finds one. */
static int find_room(struct approvals *approvals, const struct approval *asked, error *err)
{
    uint64_t tenants = 0, askers = 0;
    if (approval_store_count(approvals->store, asked, &tenants, &askers, err) < 0)
        return -1;
    if (tenants >= PENDING_MAX)
        return fail(err, ERR_BUSY, "%d approvals wait for a decision already; try again later",
                    PENDING_MAX);
    if (askers >= PENDING_MAX - tenants)
        return fail(err, ERR_BUSY,
                    "%d approvals of this key wait for a decision already, the other places are "
                    "for other keys; try again later",
                    (int) askers);
    return 0;
}

static int ask_anew(struct approvals *approvals, const struct approval_question *question,
                    struct approval *ret_approval, error *err)
{
    unsigned char chance[16];
    *ret_approval = question->approval;
    if (find_room(approvals, ret_approval, err) < 0)
        return -1;
    if (question->card->failed || question->card->size > APPROVAL_CARD_MAX)
        return fail(err, ERR_POLICY,
                    "this needs approval, and is too large to be shown whole to an approver (%zu "
                    "bytes, %d are shown); make code and inputs smaller",
                    question->card->size, APPROVAL_CARD_MAX);
    randombytes_buf(chance, sizeof chance);
    memcpy(ret_approval->id, "apr_", 5);
    (void) sodium_bin2hex(ret_approval->id + 4, sizeof ret_approval->id - 4, chance, sizeof chance);
    ret_approval->state = APPROVAL_PENDING;
    ret_approval->expires_ms = ret_approval->asked_ms + (int64_t) question->expires_in_ms;
    if (approval_audit(approvals, "approval.requested", ret_approval, err) < 0 ||
        approval_store_add(approvals->store, ret_approval, question->card, err) < 0)
        return -1;
    log_event(APPROVAL_REQUESTED, TEXT("approval", ret_approval->id),
              TEXT("key", ret_approval->asker), TEXT("policy", ret_approval->policy));
    approval_notify(approvals, "requested", ret_approval);
    approvals_tell(approvals);
    look_in(approvals, LOOK_MS);
    return APPROVAL_PENDING;
}

/* An approval for one request is marked as used before the run begins. */
static int use(struct approvals *approvals, const char *run, struct approval *approval, error *err)
{
    if (approval->reach != REACH_ONCE)
        return APPROVAL_USED;
    approval->state = APPROVAL_USED;
    (void) snprintf(approval->run, sizeof approval->run, "%s", run);
    if (approval_audit(approvals, "approval.used", approval, err) < 0)
        return -1;
    int changed = approval_store_change(approvals->store, approval, APPROVAL_APPROVED, err);
    if (changed == 0)
        return fail(err, ERR_CONFLICT, "approval %s was used already", approval->id);
    return changed < 0 ? -1 : APPROVAL_USED;
}

int approvals_ask(struct approvals *approvals, const struct approval_question *question,
                  struct approval *ret_approval, error *err)
{
    struct approval_question now = *question;
    now.approval.asked_ms = wall_clock_ms();
    if (approvals_expire_due(approvals, err) < 0)
        return -1;
    int found = now.named ? find_named(approvals, &now, ret_approval, err)
                          : find_valid(approvals, &now.approval, ret_approval, err);
    if (found < 0)
        return -1;
    if (found == 0)
        return ask_anew(approvals, &now, ret_approval, err);
    if (ret_approval->state == APPROVAL_APPROVED)
        return use(approvals, question->run, ret_approval, err);
    return ret_approval->state == APPROVAL_PENDING ? APPROVAL_PENDING : APPROVAL_DENIED;
}

bool approvals_cover(struct approvals *approvals, const struct approval *place)
{
    struct approval found, now = *place;
    error unused;
    now.asked_ms = wall_clock_ms();
    return find_reach(approvals, &now, &found, &unused) == 1;
}

/* --- showing ---------------------------------------------------------------------------------- */

struct seen_listing {
    const struct approvals *approvals;
    const struct account *account;
    const struct approval_listing *listing;
};

/* The page should only have approvals that the account may see; this checks again. */
static void list_if_seen(void *context, const struct approval *approval)
{
    const struct seen_listing *seen = context;
    struct approval now = *approval;
    approval_show_lapsed(seen->approvals, &now);
    if (approval_is_seen(seen->account, approval))
        seen->listing->each(seen->listing->context, &now);
}

int approvals_list(struct approvals *approvals, const struct account *account,
                   const struct approval_listing *listing, error *err)
{
    const struct api_key *key = &account->key;
    bool is_owner = key->id[0] == '\0', is_approver = key->scopes & SCOPE_APPROVE;
    struct approval after = { 0 };
    struct seen_listing seen = { approvals, account, listing };
    const struct approval_page page = { .state = listing->state,
                                        .tenant = !is_owner && is_approver ? key->tenant : NULL,
                                        .asker = !is_owner && !is_approver ? key->id : NULL,
                                        .with_owners = approval_decides_for_owner(key),
                                        .after = listing->after ? &after : NULL,
                                        .max = listing->max,
                                        .each = list_if_seen,
                                        .context = &seen };
    if (listing->after && approvals_find(approvals, account, listing->after, &after, err) < 0)
        return -1;
    return approvals_expire_due(approvals, err) < 0
               ? -1
               : approval_store_list(approvals->store, &page, err);
}

int approvals_card(struct approvals *approvals, const struct approval *approval, struct bytes *card,
                   error *err)
{
    return approval_store_card(approvals->store, approval->id, card, err);
}
