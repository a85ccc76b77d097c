/* service_approvals.h - requests that wait for a person's decision: find, list, await, decide. */
#pragma once

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "engine/service/service.h"

#include <stdint.h>

enum {
    APPROVAL_CURSOR_SIZE = 37,
    APPROVAL_REASON_MAX = 511, /* bytes */
    APPROVAL_UNTIL_MAX_S = 30 * 24 * 3600,
};

/* Adds an Approval of docs/api.md, with its card. Fails  ERR_NOT_FOUND  there is none with this id
 * that the caller may see. */
int service_approval(const struct service *service, const struct caller *caller, const char *id,
                     struct bytes *out, error *err);
/* Gives  *ret_is_pending: not decided yet. Fails  as service_approval(). */
int service_approval_is_pending(const struct service *service, const struct caller *caller,
                                const char *id, bool *ret_is_pending, error *err);

/* --- a page of them, the oldest first --------------------------------------------------------- */

struct approval_list {
    const char *state;  /* "pending", "approved" …; "all" or NULL: any */
    const char *cursor; /* `next` of the page before; NULL: begins with the oldest */
    uint64_t max;
    uint64_t count;                  /* set: how many were added */
    char next[APPROVAL_CURSOR_SIZE]; /* set: cursor of the next page; "": there are no more */
};

/* Adds those that the caller may see to an open array, without their cards. Fails  ERR_BAD_REQUEST
 * unknown state; ERR_NOT_FOUND  unknown cursor. */
int service_list_approvals(const struct service *service, const struct caller *caller,
                           struct approval_list *list, struct bytes *out, error *err);

/* --- a decision ------------------------------------------------------------------------------- */

struct approval_order {
    const char *id;
    const char *decision; /* "approve", "deny", "revoke" */
    const char *scope;    /* "once", "code", "session", "time"; "": once */
    const char *reason;   /* "": none */
    uint64_t until_s;     /* from now; 0: as long as it could wait for the decision */
};

/* Adds the approval with the decision. Fails  ERR_BAD_REQUEST  unknown decision or scope;
 * ERR_NOT_FOUND; ERR_FORBIDDEN  it is the caller's own request, or reaches further than the policy
 * allows; ERR_CONFLICT  it is decided, expired, or used already */
int service_decide_approval(const struct service *service, const struct caller *caller,
                            const struct approval_order *order, struct bytes *out, error *err);

/* --- waiting ---------------------------------------------------------------------------------- */

struct approval_wait;

/* Calls `waker` whenever something is requested or decided. NULL: no memory. */
struct approval_wait *service_await_approvals(const struct service *service, int64_t wait_ms,
                                              const struct waker *waker);
/* True if its time has passed, or the daemon is ending. */
bool approval_wait_is_over(const struct approval_wait *wait);
deadline approval_wait_end(const struct approval_wait *wait);
void approval_wait_done(struct approval_wait *wait);

/* Adds the URL of the page that decides on it; nothing if there is none. */
void service_approval_page(const struct service *service, const char *id, struct bytes *out);
