/* service_callers.h - who calls, what the key of a caller is good for, and what is left of its
 * quotas. */
#pragma once

#include "base/error.h"
#include "engine/service/service.h"

#include <stddef.h>
#include <stdint.h>

/* What a key must be good for. Whatever it is, a caller is shown what belongs to its own tenant
 * only. */
enum right {
    RIGHT_OF_TABLE, /* of a row: what its table says; of a table: RIGHT_ADMIN, the careful choice */
    RIGHT_ADMIN,
    RIGHT_RUN,
    RIGHT_SESSIONS,
    RIGHT_RESULTS, /* run or sessions: a cell is a run, too */
    RIGHT_APPROVE,
    RIGHT_ASKER, /* run, sessions or approve: those that ask and those that decide */
    RIGHT_AUDIT,
    RIGHT_ANY, /* any good key */
    RIGHT_NONE /* no key is needed: the answer is public */
};

/* What a request brings along to be recognized by. */
struct credentials {
    const char *key; /* as it was sent; NULL: none was */
    bool is_owner;   /* of the daemon, by the Unix socket */
    bool is_remote;  /* by TCP */
};

/* Sets caller->account; to NULL if there is no key and one is needed. Fails  ERR_UNAUTHORIZED. */
int service_identify(struct service *service, const struct credentials *credentials,
                     struct caller *caller, error *err);

/* The issuer whose access tokens are accepted beside keys, and their audience. False: no tokens
 * are accepted. */
bool service_takes_tokens(const struct service *service, const char **ret_issuer,
                          const char **ret_audience);
/* The scopes one of which a token must name for `right`, with blanks between them. */
void service_token_scopes_print(enum right right, char *text, size_t size);

/* The caller is the key with this id, "" the owner of the daemon, which has signed for this use of
 * a session. Fails  ERR_UNAUTHORIZED  there is no such key any more; ERR_FORBIDDEN */
int service_identify_signer(struct service *service, const char *key, const char *session,
                            struct caller *caller, error *err);

/* The scopes one of which a key must have for `right`, as "run,sessions". */
void service_right_print(enum right right, char *text, size_t size);

/* Fails  ERR_FORBIDDEN. */
int service_check_right(const struct caller *caller, enum right right, error *err);

/* Is its key or token still good? For answers that take long. */
bool service_caller_is_good(const struct service *service, const struct caller *caller);

bool service_is_owner(const struct caller *caller); /* of the daemon: it has no key and no quotas */
const char *service_key_id(const struct caller *caller); /* of its key; "": the owner */
const char *service_tenant(const struct caller *caller);
/* Does what belongs to `other` exist for it? True within one tenant. */
bool service_sees(const struct caller *caller, const struct caller *other);

struct quota_left {
    uint64_t limit; /* 0: there is none */
    uint64_t left;
    uint32_t reset_s;
};
void service_quotas(const struct service *service, const struct caller *caller,
                    struct quota_left *ret_runs, struct quota_left *ret_cpu_s);

/* When the request that was refused just now has a chance, in seconds; 0: it was not refused by a
 * quota. Said once. */
unsigned service_take_retry_s(const struct caller *caller);
