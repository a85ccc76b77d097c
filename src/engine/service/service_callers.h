/* service_callers.h - identifies callers, checks the rights of their keys, and reports their
 * quotas. */
#pragma once

#include "base/error.h"
#include "engine/service/service.h"

#include <stddef.h>
#include <stdint.h>

/* The right that an operation needs. With any right a caller sees only what belongs to its own
 * tenant. */
enum right {
    RIGHT_OF_TABLE, /* in a row: the right of its table; in a table: RIGHT_ADMIN */
    RIGHT_ADMIN,
    RIGHT_RUN,
    RIGHT_SESSIONS,
    RIGHT_RESULTS, /* run or sessions: a cell is also a run */
    RIGHT_APPROVE,
    RIGHT_ASKER, /* run, sessions or approve: askers and approvers */
    RIGHT_AUDIT,
    RIGHT_ANY, /* any valid key */
    RIGHT_NONE /* no key is needed: the answer is public */
};

/* What a request gives to identify its caller. */
struct credentials {
    const char *key; /* as sent; NULL: none */
    bool is_owner;   /* the daemon's owner, on the Unix socket */
    bool is_remote;  /* on TCP */
};

/* Sets caller->account; to NULL if there is no key and one is needed. Fails  ERR_UNAUTHORIZED. */
int service_identify(struct service *service, const struct credentials *credentials,
                     struct caller *caller, error *err);

/* Gives the issuer of the access tokens that are accepted, and their audience. False: no tokens are
 * accepted. */
bool service_takes_tokens(const struct service *service, const char **ret_issuer,
                          const char **ret_audience);
/* The scopes for `right`, separated by blanks: a token must have one of them. */
void service_token_scopes_print(enum right right, char *text, size_t size);

/* The caller is the key with this id ("": the owner of the daemon) that has signed this use of a
 * session. Fails  ERR_UNAUTHORIZED  there is no such key any more; ERR_FORBIDDEN */
int service_identify_signer(struct service *service, const char *key, const char *session,
                            struct caller *caller, error *err);

/* The scopes for `right`, as "run,sessions": a key must have one of them. */
void service_right_print(enum right right, char *text, size_t size);

/* Fails  ERR_FORBIDDEN. */
int service_check_right(const struct caller *caller, enum right right, error *err);

/* Is its key or token still valid? For answers that take long. */
bool service_caller_is_good(const struct service *service, const struct caller *caller);

bool service_is_owner(const struct caller *caller);      /* the daemon's: no key, no quotas */
const char *service_key_id(const struct caller *caller); /* "": the owner */
const char *service_tenant(const struct caller *caller);
/* May it see what belongs to `other`? True within one tenant. */
bool service_sees(const struct caller *caller, const struct caller *other);

struct quota_left {
    uint64_t limit; /* 0: none */
    uint64_t left;
    uint32_t reset_s;
};
void service_quotas(const struct service *service, const struct caller *caller,
                    struct quota_left *ret_runs, struct quota_left *ret_cpu_s);

/* Seconds until the request that was just refused may be tried again; 0: it was not refused by a
 * quota. Given once. */
unsigned service_take_retry_s(const struct caller *caller);
