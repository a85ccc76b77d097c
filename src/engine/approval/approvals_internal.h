/* approvals_internal.h - shared by approvals.c, which stores and shows approvals, and
 * approval_decision.c, which checks who may decide and decides. */
#pragma once

#include "engine/approval/approval_store.h"
#include "engine/approval/approvals.h"

struct approvals {
    struct approval_store *store;
    const struct accounts *accounts;
    struct receipts *receipts;
    struct notify_client *notify_client;
    const char *const *page_url;
    struct approval_listener *listeners;
    uv_timer_t timer;
    int64_t forget_ms; /* when old ones are deleted next */
    bool outlive_runs;
};

/* Writes an audit event: hashes and names, never what was requested. */
int approval_audit(struct approvals *approvals, const char *event, const struct approval *approval,
                   error *err);

/* Expires what is due. Each call begins with it and does not rely on the timer. */
int approvals_expire_due(struct approvals *approvals, error *err);

/* Shows the approval as revoked if the approver's key is no longer valid. */
void approval_show_lapsed(const struct approvals *approvals, struct approval *approval);

/* May this key decide on requests of the daemon's owner, who has no tenant? */
bool approval_decides_for_owner(const struct api_key *key);
bool approval_is_seen(const struct account *account, const struct approval *approval);

/* Sends "requested", "decided" or "expired" to the webhook, if there is one. */
void approval_notify(const struct approvals *approvals, const char *word,
                     const struct approval *approval);
