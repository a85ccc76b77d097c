/* approvals_internal.h - what the files of approvals share, and no other file needs: approvals.c
 * asks and shows, approval_decision.c says who may decide, and takes the decision. */
#pragma once

#include "engine/approval/approval_store.h"
#include "engine/approval/approvals.h"

struct approvals {
    struct approval_store *store;
    const struct accounts *accounts;
    struct receipts *receipts;
    struct notify_client *notify_client;
    struct approval_listener *listeners;
    uv_timer_t timer;
    int64_t forget_ms; /* when old ones are forgotten next */
    bool outlive_runs;
};

/* What has happened, for good: hashes and names, never what was asked. */
int approval_audit(struct approvals *approvals, const char *event, const struct approval *approval,
                   error *err);

/* Every call looks at the clock first: what is due has expired, whenever the timer comes. */
int approvals_expire_due(struct approvals *approvals, error *err);

/* The key that gave it is good no more: then it is shown as revoked. */
void approval_show_lapsed(const struct approvals *approvals, struct approval *approval);

/* May this key decide on what the owner of the daemon asks, who is of no tenant? */
bool approval_decides_for_owner(const struct api_key *key);
bool approval_is_seen(const struct account *account, const struct approval *approval);

/* It was "requested", "decided" or has "expired": told to the webhook, if there is one. */
void approval_notify(const struct approvals *approvals, const char *word,
                     const struct approval *approval);
