/* service_callers.c - see service_callers.h; keys and quotas are in engine/schedule/accounts. */
#include "engine/service/service_callers.h"

#include "base/clock.h"
#include "engine/schedule/accounts.h"
#include "engine/session/session_registry.h"
#include "keys/key.h"

static const uint32_t scopes_of[] = {
    [RIGHT_OF_TABLE] = SCOPE_ADMIN,
    [RIGHT_ADMIN] = SCOPE_ADMIN,
    [RIGHT_RUN] = SCOPE_RUN,
    [RIGHT_SESSIONS] = SCOPE_SESSIONS,
    [RIGHT_RESULTS] = SCOPE_RUN | SCOPE_SESSIONS,
    [RIGHT_APPROVE] = SCOPE_APPROVE,
    [RIGHT_ASKER] = SCOPE_RUN | SCOPE_SESSIONS | SCOPE_APPROVE,
    [RIGHT_AUDIT] = SCOPE_AUDIT,
    [RIGHT_ANY] = SCOPE_EVERY,
};

int service_identify(struct service *service, const struct credentials *credentials,
                     struct caller *caller, error *err)
{
    if (credentials->key) {
        if (accounts_identify(service->accounts, credentials->key, &caller->account, err) < 0)
            return -1;
        caller->expires_s = caller->account->is_of_token ? caller->account->key.expires_s : 0;
        return 0;
    }
    bool needs_no_key =
        credentials->is_owner || (credentials->is_remote && service->tcp_needs_no_key);
    caller->account = needs_no_key ? &service->accounts->local : NULL;
    return 0;
}

bool service_takes_tokens(const struct service *service, const char **ret_issuer,
                          const char **ret_audience)
{
    const struct oauth *oauth = service->accounts->oauth;
    if (!oauth || !oauth_is_configured(oauth))
        return false;
    *ret_issuer = oauth->issuer;
    *ret_audience = oauth->audience;
    return true;
}

void service_token_scopes_print(enum right right, char *text, size_t size)
{
    oauth_scopes_print(scopes_of[right], text, size);
}

int service_identify_signer(struct service *service, const char *key, const char *session_id,
                            struct caller *caller, error *err)
{
    struct account *account;
    if (accounts_of_key(service->accounts, key, &account, err) < 0 ||
        account_check_scope(account, SCOPE_SESSIONS, err) < 0)
        return -1;
    struct session *session = sessions_find(service->sessions, account, session_id);
    if (session)
        session_count(session, TRANSFER_URLS_USED, 1);
    caller->account = account;
    return 0;
}

void service_right_print(enum right right, char *text, size_t size)
{
    scopes_print(scopes_of[right], text, size);
}

int service_check_right(const struct caller *caller, enum right right, error *err)
{
    return right == RIGHT_NONE ? 0 : account_check_scope(caller->account, scopes_of[right], err);
}

bool service_caller_is_good(const struct service *service, const struct caller *caller)
{
    bool has_expired = caller->expires_s != 0 && caller->expires_s <= wall_clock_ms() / 1000;
    return !has_expired &&
           (!caller->account || account_is_good(service->accounts, caller->account));
}

bool service_is_owner(const struct caller *caller)
{
    return caller->account->key.id[0] == '\0';
}

const char *service_key_id(const struct caller *caller)
{
    return caller->account->key.id;
}

const char *service_tenant(const struct caller *caller)
{
    return caller->account->key.tenant;
}

bool service_sees(const struct caller *caller, const struct caller *other)
{
    return account_sees(caller->account, other->account);
}

void service_quotas(const struct service *service, const struct caller *caller,
                    struct quota_left *ret_runs, struct quota_left *ret_cpu_s)
{
    struct rate_quota quota = account_quota(service->accounts, caller->account);
    struct rate_left left;
    rate_look(&caller->account->rate, &quota, wall_clock_ms() / 1000, &left);
    *ret_runs = (struct quota_left){ quota.runs_per_minute, left.runs, left.runs_reset_s };
    *ret_cpu_s = (struct quota_left){ quota.cpu_seconds_per_day, left.cpu_s, left.cpu_reset_s };
}

unsigned service_take_retry_s(const struct caller *caller)
{
    unsigned wait_s = caller->account->retry_s;
    caller->account->retry_s = 0;
    return wait_s;
}
