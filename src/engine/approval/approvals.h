/* approvals.h - requests that wait for a person's decision, and the decisions.
 *
 *             +--> approved --> used      (an approval for one request, valid until `until_ms`)
 *             |        +------> revoked   (withdrawn, or the approver's key is no longer valid)
 *   pending --+--> denied
 *             +--> expired                (not decided in time: the request is refused)
 *
 * An approval is bound to the digest of the whole request, of its policy and of its template: any
 * other request needs its own. The request does not wait: the asker gets the approval's id, and
 * sends the same request again once it is approved. So no run is held meanwhile, and a restart of
 * the daemon neither loses an approval nor grants one: each step is on disk before it is reported.
 *
 *   Threads  none.   See  docs/approvals.md, docs/decisions/0054 */
#pragma once

#include "base/bytes.h"
#include "engine/run/queue.h"
#include "engine/schedule/accounts.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <uv.h>

struct notify_client;

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
    char asker[API_KEY_ID_SIZE]; /* id of the API key; "": the owner of the daemon */
    char tenant[API_KEY_NAME_SIZE];
    char policy[POLICY_NAME_SIZE];
    char policy_digest[POLICY_DIGEST_SIZE];
    char session[64]; /* "": none */
    unsigned char binding[APPROVAL_BINDING_SIZE];
    char sha256[SHA256_TEXT_SIZE]; /* of the code or the command, as receipts name it */
    uint32_t reaches;              /* those that the policy allows; bits of policy_approval_reach */
    uint32_t reasons;              /* why a person is asked; bits of policy_asks */
    bool is_out_of_band;
    int64_t asked_ms, expires_ms; /* since 1970; it is pending until expires_ms */
    uint32_t reach;               /* set by the decision */
    int64_t decided_ms, until_ms;
    char approver[API_KEY_ID_SIZE];
    char reason[APPROVAL_REASON_SIZE];
    char run[RUN_ID_SIZE]; /* the run that used it */
};

/* Adds the field `reasons`. */
void approval_reasons_write(uint32_t reasons, struct bytes *out);

struct approvals_place {
    const char *state;               /* the folder for their file; NULL: in memory */
    const struct accounts *accounts; /* the keys of askers and approvers */
    struct receipts *receipts;
    struct notify_client *notify_client; /* sends each step to the webhook; NULL: none */
    const char *const
        *page_url; /* of the page for decisions, with {id}; may change; "", NULL: none */
};

/* Fails  ERR_SYSTEM. */
int approvals_open(uv_loop_t *loop, const struct approvals_place *place,
                   struct approvals **ret_approvals, error *err);

/* False in a private daemon: no decision can reach it. */
bool approvals_can_wait(const struct approvals *approvals);

void approvals_leave(struct approvals *approvals); /* before the loop ends: closes the timer */
void approvals_close(struct approvals *approvals); /* after the loop */

/* A request that needs approval: `approval` has all but id, state and what the decision sets. */
struct approval_question {
    struct approval approval;
    const char *named; /* the approval that the request names; NULL: none */
    const char *run;   /* the run that asks */
    uint64_t expires_in_ms;
    const struct bytes *card; /* JSON: what an approver is shown; kept until the decision */
};

/* Decides whether a run may begin. Gives  *ret_approval.
 * Returns  APPROVAL_USED      it may, under this approval, which is now used if it was for once
 *          APPROVAL_PENDING   it is not decided; requested now, if it was not before
 *          APPROVAL_DENIED    it may not; `reason` says why
 * Fails    ERR_NOT_FOUND, ERR_FORBIDDEN, ERR_CONFLICT  the named approval does not exist, is of
 * another asker or for another request, or is used; ERR_BUSY  too many wait; ERR_SYSTEM  it cannot
 * be stored: the run must not begin */
int approvals_ask(struct approvals *approvals, const struct approval_question *question,
                  struct approval *ret_approval, error *err);

/* Is anything that this asker runs there approved, in this session or for a time? False if that is
 * unknown. */
bool approvals_cover(struct approvals *approvals, const struct approval *place);

struct approval_decision {
    const struct account *account; /* the approver */
    const char *id;
    bool approves;
    uint32_t reach;     /* 0: one request */
    int64_t until_ms;   /* 0: from now, as long as it could wait */
    const char *reason; /* NULL: none */
};

/* Makes the final decision. Fails  ERR_NOT_FOUND; ERR_FORBIDDEN  it is the asker's own request, or
 * reaches further than the policy allows; ERR_CONFLICT  it is decided or expired already. */
int approvals_decide(struct approvals *approvals, const struct approval_decision *decision,
                     struct approval *ret_approval, error *err);

/* Withdraws an approval before it is used; runs that began under it go on. `decision` has the
 * account and the reason. Fails  ERR_NOT_FOUND; ERR_CONFLICT  it is pending, used, or was not
 * approved. */
int approvals_revoke(struct approvals *approvals, const struct approval_decision *decision,
                     struct approval *ret_approval, error *err);

/* The name of an asker's or approver's key while the key exists; else "". */
void approvals_key_name(const struct approvals *approvals, const char *id,
                        char ret_name[API_KEY_NAME_SIZE]);

/* Fails  ERR_NOT_FOUND  there is none with this id that the account may see. */
int approvals_find(struct approvals *approvals, const struct account *account, const char *id,
                   struct approval *ret_approval, error *err);

/* Calls back for those that this account may see, the oldest first, at most `max`; state
 * APPROVAL_STATES: any state. Fails  ERR_NOT_FOUND  there is no `after`. */
struct approval_listing {
    enum approval_state state;
    uint64_t max;
    const char *after; /* id of the last one of the page before; NULL: the first page */
    void (*each)(void *context, const struct approval *approval);
    void *context;
};
int approvals_list(struct approvals *approvals, const struct account *account,
                   const struct approval_listing *listing, error *err);

/* Adds the card as JSON; nothing if it was deleted. */
int approvals_card(struct approvals *approvals, const struct approval *approval, struct bytes *card,
                   error *err);

/* Writes the address of the page for decisions on it; `url`: with {id}; NULL, "": nothing. */
void approval_page(const char *url, const char *id, struct bytes *out);

/* approval_document.c: as a JSON object, with its card while that exists. */
int approval_write(struct approvals *approvals, const struct approval *approval, bool with_card,
                   struct bytes *out, error *err);
const char *approval_state_name(enum approval_state state);
enum approval_state approval_state_of(const char *name); /* APPROVAL_STATES: none */

/* Is called when an approval was requested or decided. */
struct approval_listener {
    void *context;
    void (*changed)(void *context);
    struct approval_listener *next; /* owned by approvals.c */
};
void approvals_listen(struct approvals *approvals, struct approval_listener *listener);
void approvals_unlisten(struct approvals *approvals, struct approval_listener *listener);
void approvals_tell(struct approvals *approvals); /* wakes all that wait */
