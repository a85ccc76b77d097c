/* authenticate.c - Authorization: Bearer KEY, or X-API-Key: KEY. */
#include "doors/http/authenticate.h"

#include "base/bytes.h"
#include "base/table.h"
#include "doors/http/http_internal.h"
#include "engine/service/service_callers.h"
#include "engine/service/service_observe.h"

#include <inttypes.h>
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum { TENANT_CONNECTIONS_MAX = 256 };

bool peer_is_owner(int socket, unsigned owner)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || size != sizeof peer)
        return false;
    return peer.uid == 0 || peer.uid == owner;
}

/* The key that was sent; NULL: none. */
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
                    "Authorization and X-API-Key have different keys; send one of them");
    *ret_key = given;
    return 0;
}

int identity_check_share(const struct exchange *exchange, error *err)
{
    if (service_is_owner(&exchange->caller) ||
        exchange->http->connection_count - exchange->http->resting_count <=
            TENANT_CONNECTIONS_MAX ||
        exchanges_of_tenant(exchange, false) <= TENANT_CONNECTIONS_MAX)
        return 0;
    return fail(err, ERR_BUSY,
                "%d requests of tenant '%.40s' are under way; try again when some have ended",
                TENANT_CONNECTIONS_MAX, service_tenant(&exchange->caller));
}

/* Refuses an Idempotency-Key where the request would be done again in spite of it. */
static int check_idempotency_key(const struct exchange *exchange, error *err)
{
    const struct route *route = exchange->route;
    if (route->is_once || route->is_repeatable || strcmp(route->method, "POST") != 0 ||
        !exchange_header(exchange, "Idempotency-Key"))
        return 0;
    return fail(err, ERR_BAD_REQUEST,
                "an Idempotency-Key has no effect here: sent again, this request would be done "
                "again; leave the header out");
}

int identify(struct exchange *exchange, error *err)
{
    struct credentials credentials = { .is_owner = exchange->is_owner,
                                       .is_remote = exchange->is_remote };
    if (find_key(exchange, &credentials.key, err) < 0 || check_idempotency_key(exchange, err) < 0 ||
        service_identify(exchange->service, &credentials, &exchange->caller, err) < 0 ||
        (credentials.key && identity_check_share(exchange, err) < 0))
        return -1;
    if (!exchange->caller.account && exchange->right != RIGHT_NONE)
        return fail(err, ERR_UNAUTHORIZED,
                    "a key is needed: send Authorization: Bearer glb_…, or set GLOVEBOX_API_KEY; "
                    "make one with: glovebox key create");
    return service_check_right(&exchange->caller, exchange->right, err);
}

/* The older headers have the quota with the smaller rest. */
static void add_older(struct exchange *exchange, const struct quota_left *quota)
{
    char text[32];
    (void) snprintf(text, sizeof text, "%llu", (unsigned long long) quota->limit);
    exchange_add_header(exchange, "RateLimit-Limit", text);
    (void) snprintf(text, sizeof text, "%llu", (unsigned long long) quota->left);
    exchange_add_header(exchange, "RateLimit-Remaining", text);
    (void) snprintf(text, sizeof text, "%u", quota->reset_s);
    exchange_add_header(exchange, "RateLimit-Reset", text);
}

static void add_rates(struct exchange *exchange)
{
    struct quota_left runs, cpu_s;
    auto_bytes policy = { 0 }, state = { 0 };
    service_quotas(exchange->service, &exchange->caller, &runs, &cpu_s);
    const struct {
        const char *name;
        const struct quota_left *quota;
        unsigned window_s;
    } rows[] = { { "runs", &runs, 60 }, { "cpu-seconds", &cpu_s, 24 * 3600 } };
    for_each(row, rows) {
        if (row->quota->limit == 0)
            continue;
        const char *comma = policy.size > 0 ? ", " : "";
        bytes_print(&policy, "%s\"%s\";q=%" PRIu64 ";w=%u", comma, row->name, row->quota->limit,
                    row->window_s);
        bytes_print(&state, "%s\"%s\";r=%" PRIu64 ";t=%u", comma, row->name, row->quota->left,
                    row->quota->reset_s);
    }
    if (policy.size == 0)
        return;
    exchange_add_header(exchange, "RateLimit-Policy", bytes_text(&policy));
    exchange_add_header(exchange, "RateLimit", bytes_text(&state));
    add_older(exchange, runs.limit > 0 && (cpu_s.limit == 0 || cpu_s.left > 0) ? &runs : &cpu_s);
}

/* Counts and logs refusals, except those of the daemon's owner. */
static void note_refusal(const struct exchange *exchange, unsigned status)
{
    const struct refused_request request = { .status = status,
                                             .method = exchange->method,
                                             .path = exchange->route ? exchange->route->path : "",
                                             .is_remote = exchange->is_remote };
    if (!exchange->caller.account || !service_is_owner(&exchange->caller))
        service_log_refusal(&exchange->caller, &request);
}

/* The metadata of "https://host/mcp" is at "https://host/.well-known/oauth-protected-resource/mcp"
 * (RFC 9728, section 3.1). */
static void add_metadata_url(const char *audience, struct bytes *out)
{
    const char *host = strstr(audience, "://");
    size_t origin = host ? (size_t) (host - audience) + 3 : 0;
    origin += strcspn(audience + origin, "/");
    const char *path = strcmp(audience + origin, "/") == 0 ? "" : audience + origin;
    bytes_print(out, "resource_metadata=\"%.*s/.well-known/oauth-protected-resource%s\"",
                (int) origin, audience, path);
}

/* Says what the token of a client lacks (RFC 6750), and where it finds the authorization server. */
static void add_challenge(struct exchange *exchange, unsigned status)
{
    const char *issuer, *audience;
    auto_bytes text = { 0 };
    char scopes[160];
    bool takes_tokens = service_takes_tokens(exchange->service, &issuer, &audience);
    bool has_sent = exchange_header(exchange, MHD_HTTP_HEADER_AUTHORIZATION) != NULL;
    if (status == MHD_HTTP_FORBIDDEN && (!takes_tokens || !exchange->caller.account))
        return;
    bytes_add_text(&text, "Bearer realm=\"glovebox\"");
    if (takes_tokens && (has_sent || status == MHD_HTTP_FORBIDDEN))
        bytes_print(&text, ", error=\"%s\"",
                    status == MHD_HTTP_FORBIDDEN ? "insufficient_scope" : "invalid_token");
    if (takes_tokens && exchange->right != RIGHT_NONE) {
        service_token_scopes_print(exchange->right, scopes, sizeof scopes);
        if (scopes[0])
            bytes_print(&text, ", scope=\"%s\"", scopes);
    }
    if (takes_tokens) {
        bytes_add_text(&text, ", ");
        add_metadata_url(audience, &text);
    }
    exchange_add_header(exchange, MHD_HTTP_HEADER_WWW_AUTHENTICATE, bytes_text(&text));
}

void add_identity_headers(struct exchange *exchange, unsigned status)
{
    bool is_known = exchange->caller.account != NULL;
    if (status == MHD_HTTP_UNAUTHORIZED || status == MHD_HTTP_FORBIDDEN)
        note_refusal(exchange, status);
    char text[16];
    if (status == MHD_HTTP_UNAUTHORIZED || status == MHD_HTTP_FORBIDDEN)
        add_challenge(exchange, status);
    if (status == MHD_HTTP_TOO_MANY_REQUESTS) {
        unsigned wait_s = is_known ? service_take_retry_s(&exchange->caller) : 0;
        (void) snprintf(text, sizeof text, "%u", wait_s > 0 ? wait_s : 1);
        exchange_add_header(exchange, MHD_HTTP_HEADER_RETRY_AFTER, text);
    }
    if (is_known && !service_is_owner(&exchange->caller))
        add_rates(exchange);
}
