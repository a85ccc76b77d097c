/* authenticate.c - Authorization: Bearer KEY, or X-API-Key: KEY. */
#include "doors/http/authenticate.h"

#include "base/clock.h"
#include "doors/rest/idempotency_key.h"
#include "doors/rest/rest.h"
#include "engine/schedule/accounts.h"

#include <microhttpd.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum { TENANT_CONNECTIONS_MAX = 256 };

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

bool peer_is_owner(int socket, unsigned owner)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || size != sizeof peer)
        return false;
    return peer.uid == 0 || peer.uid == owner;
}

/* The key as it was sent; NULL if none was. */
static int find_key(const struct exchange *exchange, const char **ret_key, error *err)
{
    static const char scheme[] = "Bearer ";
    const char *key = exchange_header(exchange, "X-API-Key");
    const char *given = exchange_header(exchange, MHD_HTTP_HEADER_AUTHORIZATION);
    *ret_key = key;
    if (!given)
        return 0;
    if (strncasecmp(given, scheme, sizeof scheme - 1) != 0)
        return fail(err, ERR_UNAUTHORIZED, "write the key as: Authorization: Bearer glb_…");
    given += sizeof scheme - 1;
    if (key && strcmp(key, given) != 0)
        return fail(err, ERR_BAD_REQUEST,
                    "Authorization and X-API-Key carry two different keys; send one of them");
    *ret_key = given;
    return 0;
}

int identity_check_share(const struct exchange *exchange, error *err)
{
    const struct account *account = exchange->caller.account;
    if (account->key.id[0] == '\0' ||
        http_connection_count(exchange->http) <= TENANT_CONNECTIONS_MAX ||
        http_count_alike(exchange, account_sees) <= TENANT_CONNECTIONS_MAX)
        return 0;
    return fail(err, ERR_BUSY,
                "%d requests of tenant '%.40s' are under way; try again when some have ended",
                TENANT_CONNECTIONS_MAX, account->key.tenant);
}

int identify(struct exchange *exchange, error *err)
{
    struct service *service = exchange->service;
    const char *key;
    bool needs_no_key = exchange->is_owner || (exchange->is_remote && service->tcp_needs_no_key);
    if (find_key(exchange, &key, err) < 0 || once_check_place(exchange, err) < 0)
        return -1;
    if (key) {
        if (accounts_identify(service->accounts, key, &exchange->caller.account, err) < 0 ||
            identity_check_share(exchange, err) < 0)
            return -1;
    } else if (needs_no_key) {
        exchange->caller.account = &service->accounts->local;
    } else if (exchange->right != RIGHT_NONE) {
        return fail(err, ERR_UNAUTHORIZED,
                    "a key is needed: send Authorization: Bearer glb_…; make one with: glovebox "
                    "key create");
    }
    if (exchange->right == RIGHT_NONE)
        return 0;
    return account_check_scope(exchange->caller.account, scopes_of[exchange->right], err);
}

/* The number of the quota that is nearer to its end stands in the older headers. */
static void add_older(struct exchange *exchange, uint64_t limit, uint64_t left, uint32_t reset_s)
{
    char text[32];
    (void) snprintf(text, sizeof text, "%llu", (unsigned long long) limit);
    exchange_add_header(exchange, "RateLimit-Limit", text);
    (void) snprintf(text, sizeof text, "%llu", (unsigned long long) left);
    exchange_add_header(exchange, "RateLimit-Remaining", text);
    (void) snprintf(text, sizeof text, "%u", reset_s);
    exchange_add_header(exchange, "RateLimit-Reset", text);
}

static void add_rates(struct exchange *exchange)
{
    const struct service *service = exchange->service;
    const struct account *account = exchange->caller.account;
    struct rate_quota quota = account_quota(service->accounts, account);
    struct rate_left left;
    char policy[128] = "", state[128] = "";
    bool has_runs = quota.runs_per_minute > 0;
    bool has_cpu = quota.cpu_seconds_per_day > 0;
    if (!has_runs && !has_cpu)
        return;
    rate_look(&account->rate, &quota, wall_clock_ms() / 1000, &left);
    if (has_runs) {
        (void) snprintf(policy, sizeof policy, "\"runs\";q=%u;w=60", quota.runs_per_minute);
        (void) snprintf(state, sizeof state, "\"runs\";r=%u;t=%u", left.runs, left.runs_reset_s);
    }
    if (has_cpu) {
        size_t used = strlen(policy), stated = strlen(state);
        (void) snprintf(policy + used, sizeof policy - used, "%s\"cpu-seconds\";q=%u;w=86400",
                        has_runs ? ", " : "", quota.cpu_seconds_per_day);
        (void) snprintf(state + stated, sizeof state - stated, "%s\"cpu-seconds\";r=%llu;t=%u",
                        has_runs ? ", " : "", (unsigned long long) left.cpu_s, left.cpu_reset_s);
    }
    exchange_add_header(exchange, "RateLimit-Policy", policy);
    exchange_add_header(exchange, "RateLimit", state);
    if (has_runs && (!has_cpu || left.cpu_s > 0))
        add_older(exchange, quota.runs_per_minute, left.runs, left.runs_reset_s);
    else
        add_older(exchange, quota.cpu_seconds_per_day, left.cpu_s, left.cpu_reset_s);
}

void add_identity_headers(struct exchange *exchange, unsigned status)
{
    struct account *account = exchange->caller.account;
    char text[16];
    if (status == MHD_HTTP_UNAUTHORIZED)
        exchange_add_header(exchange, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
                            "Bearer realm=\"glovebox\"");
    if (status == MHD_HTTP_TOO_MANY_REQUESTS) {
        unsigned wait_s = account && account->retry_s > 0 ? account->retry_s : 1;
        (void) snprintf(text, sizeof text, "%u", wait_s);
        exchange_add_header(exchange, MHD_HTTP_HEADER_RETRY_AFTER, text);
        if (account)
            account->retry_s = 0; /* it was for this refusal */
    }
    if (account && account->key.id[0] != '\0')
        add_rates(exchange);
}
