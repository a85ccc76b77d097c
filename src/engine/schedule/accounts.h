/* accounts.h - who calls: a key with its tenant, its rights, its quotas and its turn; or the user
 * who owns this daemon, who comes by the Unix socket and needs no key.
 *
 * An account lasts as long as the daemon, so that what has to do with it may point to it. Code that
 * keeps something for a caller keeps the account with it, and shows it to account_sees() only. */
#pragma once

#include "base/error.h"
#include "engine/schedule/fair_share.h"
#include "engine/schedule/loop_share.h"
#include "engine/schedule/overload.h"
#include "engine/schedule/rate_limit.h"
#include "engine/store/blobs.h"
#include "keys/store.h"
#include "model/limits.h"
#include "model/outcome.h"
#include "oauth/oauth.h"

#include <stdbool.h>
#include <uv.h>

struct run;

struct account {
    struct api_key key; /* as it was when it was last shown; id "": the owner of the daemon */
    uint32_t tenant;    /* number of key.tenant in this daemon; 0: the owner */
    char owner[BLOB_OWNER_SIZE]; /* the same in names of files, across restarts */
    struct fair_share turn;
    struct loop_share requests;
    struct rate rate;
    struct run *first_queued, *last_queued;
    struct overload overload; /* its own queue was full */
    uint32_t sessions;        /* alive: each holds a slot, as each run under way does */
    unsigned retry_s;         /* of the last refusal */
    unsigned session_checkpoint_count;
    uint64_t session_checkpoint_bytes; /* of the checkpoints of its sessions, those that are being
                                          made too: checkpoints.h */

    /* since the daemon began */
    uint64_t runs, refused, built, cpu_ms; /* built: no sandbox was ready for them */
    uint64_t queued_us;                    /* that its runs have waited */
    uint64_t ends[RUN_STATUSES];
    uint64_t limit_hits[LIMITS]; /* runs that hit it */
    bool use_is_unsaved;
    bool is_of_token; /* of an issuer: the store has no such key */
    struct account *next;
};

/* What holds for keys that say nothing else; 0: no bound. */
struct account_defaults {
    uint32_t concurrency, runs_per_minute, cpu_seconds_per_day;
    uint64_t log_bytes_per_day;
    uint32_t queue; /* runs of one key that may wait */
};

struct accounts {
    struct key_store *store;     /* NULL: no keys, a private daemon */
    struct oauth *oauth;         /* NULL: no tokens of an issuer either */
    uint32_t token_callers;      /* accounts of its subjects */
    struct account local;        /* the owner of the daemon */
    struct account *all;         /* of keys that were used */
    uint32_t tenants;            /* that were seen */
    int64_t clock_us;            /* of the one that began last: fair_share.h */
    int64_t loop_clock_us;       /* of the request that began last: loop_share.h */
    struct loop_share anonymous; /* requests that need no key */
    struct account_defaults defaults;
    uint32_t busy;  /* as many runs, served and waiting, are no crowd (overload.h) */
    uint32_t slots; /* that there are, for all; 0: not known yet */
    struct {
        bool are_several;
        int64_t until_ms; /* then they are counted again */
    } keys;
    uv_timer_t save;
};

/* Opens the keys of a state folder; NULL: there are none, and none is ever accepted. */
int accounts_open(struct accounts *accounts, uv_loop_t *loop, const char *state, error *err);
void accounts_close(struct accounts *accounts); /* saves what was used; then the loop goes on */
void accounts_done(struct accounts *accounts);  /* after the loop */

/* Looks at the file of the issuer's keys, and tells the log when it cannot be used. */
void accounts_look_at_issuer(struct accounts *accounts);

/* Whose key is this text? Gives  *ret_account, borrowed for good. Fails  ERR_UNAUTHORIZED. */
int accounts_identify(struct accounts *accounts, const char *text, struct account **ret_account,
                      error *err);

/* The account of a key by its id, for what that key has signed; "" is the owner of the daemon.
 * Fails  ERR_UNAUTHORIZED  there is no such key, or it is good no more. */
int accounts_of_key(struct accounts *accounts, const char *id, struct account **ret_account,
                    error *err);

/* Is what it was identified by still good: not expired, and no key that was revoked since? */
bool account_is_good(const struct accounts *accounts, const struct account *account);

/* May it do what needs one of these scopes? Fails  ERR_FORBIDDEN. */
int account_check_scope(const struct account *account, uint32_t scopes, error *err);

/* May its runs have this policy? Fails  ERR_FORBIDDEN. */
int account_check_policy(const struct account *account, const char *policy, error *err);

/* Does what belongs to `other` exist for it? True within one tenant. */
bool account_sees(const struct account *account, const struct account *other);

/* May one more of its runs wait? Fails  ERR_BUSY  too many wait, or its quota is used up;
 * account->retry_s says when it has a chance. */
int account_admit(struct accounts *accounts, struct account *account, error *err);

/* May it leave more records in the log today? account_admit() asks that too. Fails  ERR_QUOTA. */
int account_check_log(struct accounts *accounts, struct account *account, error *err);
void account_charge_log(struct account *account, uint64_t bytes);

/* Has it processor time left today? Fails  ERR_QUOTA; account->retry_s: until the next begins. */
int account_check_day(const struct accounts *accounts, struct account *account, error *err);
bool account_has_day(const struct accounts *accounts, const struct account *account);

/* The quotas that hold for it. */
struct rate_quota account_quota(const struct accounts *accounts, const struct account *account);

/* Of the place in the queue of all keys that is left while they crowd it: how many of its runs may
 * wait. */
uint32_t account_share(const struct accounts *accounts, const struct account *account);

/* Does it hold as many slots as a key may that was made without --concurrency, while other keys may
 * come? The owner of the daemon never does. (fair_share.h) */
bool account_is_at_share(struct accounts *accounts, const struct account *account);

/* Does it even when every run has ended, its own and those of others? Then nothing that waits will
 * begin before one of its sessions ends. */
bool account_stays_at_share(struct accounts *accounts, const struct account *account);

/* Says so, and what to do. Fails  ERR_BUSY. */
int account_refuse_slot(struct accounts *accounts, struct account *account, error *err);

/* The account whose run is next; NULL: none. */
struct account *accounts_next(struct accounts *accounts);

/* Something of it has run. */
void account_charge_cpu(struct account *account, uint64_t cpu_ms);

/* One of its runs has ended, which used so much that was not charged yet. */
void account_charge(struct account *account, uint64_t cpu_us, const struct verdict *verdict,
                    const uint64_t hits[LIMITS]);
