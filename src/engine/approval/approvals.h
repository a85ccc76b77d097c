/* approvals.h - what waits for a person's decision, and what was decided.
 *
 *             +--> approved --> used      (an approval for once; it is good until `until_ms`)
 *             |        +------> revoked   (taken back, or the key that gave it is good no more)
 *   pending --+--> denied
 *             +--> expired                (it was not decided in time, which is a no)
 *
 * An approval is bound to the digest of the whole request, of its policy and of its template: what
 * differs in anything is another request, and asks again. The request does not wait: the asker gets
 * the approval's id, and sends the same request again once it is approved. So it holds no run, and
 * a daemon that ends in between loses nothing and lets nothing through: each step is on disk before
 * it is reported.
 *
 *   Threads  none.   See  docs/approvals.md, docs/decisions/0054 */
#pragma once

#include "base/bytes.h"
#include "engine/run/queue.h"
#include "engine/schedule/accounts.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <uv.h>

struct approvals;
struct notify_client;
struct receipts;

enum {
    APPROVAL_ID_SIZE = 37, /* "apr_", 32 hex digits and the end */
    APPROVAL_BINDING_SIZE = 32,
    APPROVAL_REASON_SIZE = 512,
    APPROVAL_CARD_MAX = 1024 * 1024,
};

enum approval_state {
    APPROVAL_PENDING,
    APPROVAL_APPROVED,
    APPROVAL_DENIED,
    APPROVAL_EXPIRED,
    APPROVAL_USED,
    APPROVAL_REVOKED,
    APPROVAL_STATES
};

struct approval {
    char id[APPROVAL_ID_SIZE];
    enum approval_state state;
    char asker[API_KEY_ID_SIZE]; /* id of the key; "": the owner of the daemon */
    char tenant[API_KEY_NAME_SIZE];
    char policy[POLICY_NAME_SIZE];
    char policy_digest[POLICY_DIGEST_SIZE];
    char session[64]; /* "": none */
    unsigned char binding[APPROVAL_BINDING_SIZE];
    char sha256[SHA256_TEXT_SIZE]; /* of the code or the command, as receipts name it */
    uint32_t reaches;              /* that the policy allows; bits of policy_approval_reach */
    bool is_out_of_band;
    int64_t asked_ms, expires_ms; /* since 1970; pending until then */
    uint32_t reach;               /* once decided */
    int64_t decided_ms, until_ms;
    char approver[API_KEY_ID_SIZE];
    char reason[APPROVAL_REASON_SIZE];
    char run[RUN_ID_SIZE]; /* that has used it */
};

struct approvals_place {
    const char *state;               /* folder where they are kept; NULL: in memory, for one run */
    const struct accounts *accounts; /* whose keys ask and decide */
    struct receipts *receipts;
    struct notify_client *notify_client; /* is notified of each step; NULL: none */
};

/* Fails  ERR_SYSTEM. */
int approvals_open(uv_loop_t *loop, const struct approvals_place *place,
                   struct approvals **ret_approvals, error *err);

/* False in a daemon for one run: no decision can come after it. */
bool approvals_can_wait(const struct approvals *approvals);

void approvals_leave(struct approvals *approvals); /* the loop ends: gives its timer back */
void approvals_close(struct approvals *approvals); /* after the loop */

/* What is asked: all but id, state and what only a decision brings is filled in. */
struct approval_question {
    struct approval approval;
    const char *named; /* the approval that the asker names; NULL: none */
    const char *run;   /* which asks */
    uint64_t expires_in_ms;
    const struct bytes *card; /* JSON: what an approver is shown; kept until it is decided */
};

/* May this begin? Gives  *ret_approval.
 * Returns  APPROVAL_USED      it may, under this approval; if that was for once, it is spent now
 *          APPROVAL_PENDING   not yet; asked for now if it was not
 *          APPROVAL_DENIED    no; reason says why
 * Fails    ERR_NOT_FOUND, ERR_FORBIDDEN, ERR_CONFLICT  the named one is none, another's, for
 * something else or spent; ERR_BUSY  too many wait; ERR_SYSTEM  it cannot be kept: it must not
 * begin */
int approvals_ask(struct approvals *approvals, const struct approval_question *question,
                  struct approval *ret_approval, error *err);

/* Was it approved that this asker runs anything there: in this session, or for a time? A
 * no if it is not known. */
bool approvals_cover(struct approvals *approvals, const struct approval *place);

struct approval_decision {
    const struct account *account; /* who decides, and on what */
    const char *id;
    bool approves;
    uint32_t reach;     /* 0: once */
    int64_t until_ms;   /* 0: as long as it could wait, from now */
    const char *reason; /* NULL: none */
};

/* Decides, for good. Fails  ERR_NOT_FOUND; ERR_FORBIDDEN  it is the asker's own, or further than
 * the policy allows; ERR_CONFLICT  decided or expired already. */
int approvals_decide(struct approvals *approvals, const struct approval_decision *decision,
                     struct approval *ret_approval, error *err);

/* Takes an approval back before it was used; what has begun under it goes on. `decision` says who
 * and why. Fails  ERR_NOT_FOUND; ERR_CONFLICT  it is pending, or spent, or was no approval. */
int approvals_revoke(struct approvals *approvals, const struct approval_decision *decision,
                     struct approval *ret_approval, error *err);

/* The name of a key that has asked or decided, as long as it is known; else "". */
void approvals_key_name(const struct approvals *approvals, const char *id,
                        char ret_name[API_KEY_NAME_SIZE]);

/* Fails  ERR_NOT_FOUND  if none that this account may see has this id. */
int approvals_find(struct approvals *approvals, const struct account *account, const char *id,
                   struct approval *ret_approval, error *err);

/* Calls for those that this account may see, the oldest first, at most `max`; state
 * APPROVAL_STATES: whatever it is. Fails  ERR_NOT_FOUND  there is no `after`. */
struct approval_listing {
    enum approval_state state;
    uint64_t max;
    const char *after; /* id of the last one of the page before; NULL: the first page */
    void (*each)(void *context, const struct approval *approval);
    void *context;
};
int approvals_list(struct approvals *approvals, const struct account *account,
                   const struct approval_listing *listing, error *err);

/* Adds what the card of one says, as JSON; nothing once it is gone. */
int approvals_card(struct approvals *approvals, const struct approval *approval, struct bytes *card,
                   error *err);

/* approval_document.c: as a JSON object, with its card as long as there is one. */
int approval_write(struct approvals *approvals, const struct approval *approval, bool with_card,
                   struct bytes *out, error *err);
const char *approval_state_name(enum approval_state state);
enum approval_state approval_state_of(const char *name); /* APPROVAL_STATES: none */

/* Is notified when an approval was requested or decided. */
struct approval_listener {
    void *context;
    void (*changed)(void *context);
    struct approval_listener *next; /* theirs */
};
void approvals_listen(struct approvals *approvals, struct approval_listener *listener);
void approvals_unlisten(struct approvals *approvals, struct approval_listener *listener);
void approvals_tell(struct approvals *approvals); /* all waiters look again */
