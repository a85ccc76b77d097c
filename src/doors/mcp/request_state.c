/* request_state.c - state that a client without a handshake carries from one round of a call to the
 * next: sealed by us, valid for this caller and this call with these arguments, for some minutes,
 * and once. */
#include "base/clock.h"
#include "doors/mcp/mcp.h"
#include "json/canonical_tree.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

enum {
    VALID_MS = 15 * 60 * 1000,
    USED_MAX = 4096,
    USED_OF_ACCOUNT_MAX = 256,
    NONCE_SIZE = 16,
    BASE64_MAX = 512
};

/* Followed by the text. */
struct head {
    unsigned char nonce[NONCE_SIZE];
    int64_t expires_ms;
};

struct sealed {
    unsigned char mac[crypto_auth_BYTES];
    struct head head;
    char text[MCP_STATE_SIZE];
};

static unsigned char key[crypto_auth_KEYBYTES];
static bool has_key;

/* Those that were used, until they expire. */
static struct {
    struct head head;
    const struct account *account;
} used[USED_MAX];
static size_t used_count;

static void add(crypto_auth_hmacsha512256_state *mac, const void *data, size_t size)
{
    uint64_t length = size;
    (void) crypto_auth_hmacsha512256_update(mac, (const void *) &length, sizeof length);
    if (size > 0)
        (void) crypto_auth_hmacsha512256_update(mac, data, size);
}

static void add_json(crypto_auth_hmacsha512256_state *mac, struct json_object *value)
{
    auto_bytes text = { 0 };
    if (value)
        canonical_write(value, &text);
    add(mac, text.data, text.size);
}

static void seal(const struct mcp_call *call, struct sealed *state)
{
    crypto_auth_hmacsha512256_state mac;
    uintptr_t account = (uintptr_t) call->exchange->caller.account; /* accounts are never freed */
    if (!has_key)
        randombytes_buf(key, sizeof key);
    has_key = true;
    (void) crypto_auth_hmacsha512256_init(&mac, key, sizeof key);
    add(&mac, &state->head, sizeof state->head);
    add(&mac, state->text, strlen(state->text));
    add(&mac, &account, sizeof account);
    add(&mac, call->method_name, strlen(call->method_name));
    add_json(&mac, json_member(call->params, "name"));
    add_json(&mac, json_member(call->params, "uri"));
    add_json(&mac, json_member(call->params, "arguments"));
    (void) crypto_auth_hmacsha512256_final(&mac, state->mac);
}

void mcp_state_write(const struct mcp_call *call, const char *text, struct bytes *out)
{
    struct sealed state = { .head.expires_ms = now_ms() + VALID_MS };
    char base64[BASE64_MAX];
    (void) snprintf(state.text, sizeof state.text, "%s", text);
    randombytes_buf(state.head.nonce, sizeof state.head.nonce);
    seal(call, &state);
    size_t size = offsetof(struct sealed, text) + strlen(state.text);
    (void) sodium_bin2base64(base64, sizeof base64, (const void *) &state, size,
                             sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    bytes_print(out, "v1.%s", base64);
}

/* Fails if it was used before, or if the account has used too many: none may use up the table. */
static int spend(const struct head *head, const struct account *account)
{
    size_t kept = 0, own = 0;
    bool is_used = false;
    for (size_t i = 0; i < used_count; i++) {
        is_used |= memcmp(used[i].head.nonce, head->nonce, NONCE_SIZE) == 0;
        if (used[i].head.expires_ms < now_ms())
            continue;
        own += used[i].account == account;
        used[kept++] = used[i];
    }
    used_count = kept;
    if (is_used || used_count == USED_MAX || own == USED_OF_ACCOUNT_MAX)
        return -1;
    used[used_count].head = *head;
    used[used_count++].account = account;
    return 0;
}

static int unseal(const struct mcp_call *call, const char *given, struct sealed *state)
{
    unsigned char mac[crypto_auth_BYTES];
    size_t size = 0;
    memset(state, 0, sizeof *state);
    if (strncmp(given, "v1.", 3) != 0 ||
        sodium_base642bin((unsigned char *) state, sizeof *state - 1, given + 3, strlen(given + 3),
                          NULL, &size, NULL, sodium_base64_VARIANT_URLSAFE_NO_PADDING) < 0 ||
        size < offsetof(struct sealed, text))
        return -1;
    memcpy(mac, state->mac, sizeof mac);
    seal(call, state);
    if (sodium_memcmp(mac, state->mac, sizeof mac) != 0 || state->head.expires_ms < now_ms())
        return -1;
    return spend(&state->head, call->exchange->caller.account);
}

int mcp_state_read(struct mcp_call *call, char ret_text[MCP_STATE_SIZE])
{
    struct sealed state;
    struct json_object *given = json_member(call->params, "requestState");
    const char *text = member_text(call->params, "requestState");
    ret_text[0] = '\0';
    if (!given || call->era != ERA_STATELESS)
        return 0;
    if (!text || unseal(call, text, &state) < 0) {
        mcp_fail(call, MCP_INVALID_PARAMS,
                 "requestState is not ours, of another call, used already or expired; make the "
                 "call again without it");
        return -1;
    }
    memcpy(ret_text, state.text, MCP_STATE_SIZE);
    return 1;
}
