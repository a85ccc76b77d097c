/* approval_store.h - approvals in an SQLite file that only the daemon can read. Each change is on
 * disk before its call returns. For approvals.c only. */
#pragma once

#include "engine/approval/approvals.h"

struct approval_store;

/* FOLDER/approvals.db, mode 0600; NULL: in memory. */
int approval_store_open(const char *folder, struct approval_store **ret_store, error *err);
void approval_store_close(struct approval_store *store);

int approval_store_add(struct approval_store *store, const struct approval *approval,
                       const struct bytes *card, error *err);

/* Writes a decision, an expiry or a use, if the approval is still in the state `from`; deletes its
 * card unless it is pending now. Returns  how many were changed: 1, or 0. */
int approval_store_change(struct approval_store *store, const struct approval *approval,
                          enum approval_state from, error *err);

/* How to look an approval up: by id, or the newest that matches. Returns 1 if there is one, 0 if
 * not. */
enum approval_lookup {
    BY_ID,
    BY_BINDING, /* the same asker and the same request */
    BY_REACH,   /* approved for a session, or for a time, and not for one request */
    BY_DUE,     /* still pending after `expires_ms`, of any key */
};
int approval_store_find(struct approval_store *store, enum approval_lookup lookup,
                        const struct approval *like, struct approval *ret_approval, error *err);

/* Counts pending ones: those of the tenant of `like`, and those of its asker. */
int approval_store_count(struct approval_store *store, const struct approval *like,
                         uint64_t *ret_tenants, uint64_t *ret_askers, error *err);

/* A page, the oldest first. */
struct approval_page {
    enum approval_state state;    /* APPROVAL_STATES: any */
    const char *tenant, *asker;   /* only theirs; NULL: of any key. Set one at most */
    bool with_owners;             /* with `tenant`: also those of the daemon's owner */
    const struct approval *after; /* the last one of the page before; NULL: the first page */
    uint64_t max;
    void (*each)(void *context, const struct approval *approval);
    void *context;
};
int approval_store_list(struct approval_store *store, const struct approval_page *page, error *err);
int approval_store_card(struct approval_store *store, const char *id, struct bytes *out,
                        error *err);

/* Deletes those that ended before `before_ms`. */
int approval_store_forget(struct approval_store *store, int64_t before_ms, error *err);
