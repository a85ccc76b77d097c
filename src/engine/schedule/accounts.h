/* accounts.h - callers: an API key with its tenant, scopes, quotas and queue; or the owner of the
 * daemon, who uses the Unix socket and needs no key.
 *
 * An account lives as long as the daemon, so that others may point to it. Code that keeps data for
 * a caller stores the account with it, and shows the data only to those for whom account_sees() is
 * true. */
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
    struct api_key key;          /* as it was when last used; id "": the owner of the daemon */
    uint32_t tenant;             /* number of key.tenant in this daemon; 0: the owner */
    char owner[BLOB_OWNER_SIZE]; /* the tenant in file names, the same after a restart */
    struct fair_share turn;
    struct loop_share requests;
    struct rate rate;
    struct run *first_queued, *last_queued;
    struct overload overload; /* after its own queue was full */
    uint32_t sessions;        /* alive: each uses a slot, like each run under way */
    unsigned retry_s;         /* of the last refusal */
    unsigned session_checkpoint_count;
    uint64_t session_checkpoint_bytes; /* of checkpoints of its sessions, also unfinished
                                          ones: checkpoints.h */

    /* since the daemon began */
    uint64_t runs, refused, built, cpu_ms; /* built: runs for which none was parked */
    uint64_t queued_us;                    /* waiting time of its runs */
    uint64_t ends[RUN_STATUSES];
    uint64_t limit_hits[LIMITS]; /* runs that reached the limit */
    bool use_is_unsaved;
    bool is_of_token; /* of a token of an issuer: the key store does not have it */
    struct account *next;
};

/* Defaults for keys without their own; 0: no bound. */
struct account_defaults {
    uint32_t concurrency, runs_per_minute, cpu_seconds_per_day;
    uint64_t log_bytes_per_day;
    uint32_t queue; /* the most runs of one key that may wait */
};

struct accounts {
    struct key_store *store;     /* NULL: no keys, in a private daemon */
    struct oauth *oauth;         /* NULL: no tokens of an issuer */
    uint32_t token_callers;      /* how many accounts tokens have made */
    struct account local;        /* the owner of the daemon */
    struct account *all;         /* of keys that were used */
    uint32_t tenants;            /* how many were seen */
    int64_t clock_us;            /* of the run that began last: fair_share.h */
    int64_t loop_clock_us;       /* of the request that began last: loop_share.h */
    struct loop_share anonymous; /* requests that need no key */
    struct account_defaults defaults;
    uint32_t busy;  /* runs, served and waiting, below which nothing is refused (overload.h) */
    uint32_t slots; /* for all accounts; 0: not known yet */
    struct {
        bool are_several;
        int64_t until_ms; /* when to count them again */
    } keys;
    uv_timer_t save;
};

/* Opens the key file of a state folder; NULL: there are no keys, and none is accepted. */
int accounts_open(struct accounts *accounts, uv_loop_t *loop, const char *state, error *err);
void accounts_close(struct accounts *accounts); /* saves the usage; before the loop ends */
void accounts_done(struct accounts *accounts);  /* after the loop */

/* Checks the file of the issuer's keys, and logs if it cannot be used. */
void accounts_look_at_issuer(struct accounts *accounts);

/* Finds the account of an API key or token. Gives  *ret_account, valid for ever. Fails
 * ERR_UNAUTHORIZED. */
int accounts_identify(struct accounts *accounts, const char *text, struct account **ret_account,
                      error *err);

/* The account of a key by its id, for signatures made with that key; "": the owner of the daemon.
 * Fails ERR_UNAUTHORIZED  there is no such key, or it is no longer valid. */
int accounts_of_key(struct accounts *accounts, const char *id, struct account **ret_account,
                    error *err);

/* Is its key or token still valid: not expired, not revoked? */
bool account_is_good(const struct accounts *accounts, const struct account *account);

/* Has it one of these scopes? Fails  ERR_FORBIDDEN. */
int account_check_scope(const struct account *account, uint32_t scopes, error *err);

/* May its runs use this policy? Fails  ERR_FORBIDDEN. */
int account_check_policy(const struct account *account, const char *policy, error *err);

/* May it see what belongs to `other`? True within one tenant. */
bool account_sees(const struct account *account, const struct account *other);

/* May one more of its runs wait? Fails  ERR_BUSY  too many wait, or its quota is used up;
 * account->retry_s says when to try again. */
int account_admit(struct accounts *accounts, struct account *account, error *err);

/* May it add records to the log today? account_admit() checks that too. Fails  ERR_QUOTA. */
int account_check_log(struct accounts *accounts, struct account *account, error *err);
void account_charge_log(struct account *account, uint64_t bytes);

/* Has it processor time left today? Fails  ERR_QUOTA; account->retry_s: until the next day
 * begins. */
int account_check_day(const struct accounts *accounts, struct account *account, error *err);
bool account_has_day(const struct accounts *accounts, const struct account *account);

/* Its quotas, with the defaults. */
struct rate_quota account_quota(const struct accounts *accounts, const struct account *account);

/* How many of its runs may wait while the common queue is overloaded. */
uint32_t account_share(const struct accounts *accounts, const struct account *account);

/* Does it hold as many slots as a key without its own --concurrency may, while other keys need
 * some? Never true for the owner of the daemon. (fair_share.h) */
bool account_is_at_share(struct accounts *accounts, const struct account *account);

/* Would it still, if all runs of all accounts had ended? Then none of its runs can begin before one
 * of its sessions ends. */
bool account_stays_at_share(struct accounts *accounts, const struct account *account);

/* Fails with ERR_BUSY, the reason, and what to do. */
int account_refuse_slot(struct accounts *accounts, struct account *account, error *err);

/* The account whose run is next; NULL: none. */
struct account *accounts_next(struct accounts *accounts);

/* One of its runs used processor time. */
void account_charge_cpu(struct account *account, uint64_t cpu_ms);

/* One of its runs has ended; cpu_us was not charged yet. */
void account_charge(struct account *account, uint64_t cpu_us, const struct verdict *verdict,
                    const uint64_t hits[LIMITS]);
