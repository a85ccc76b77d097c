/* approval_document.c - an approval as JSON, and the names of its states. */
#include "engine/approval/approvals_internal.h"

#include "base/clock.h"
#include "engine/observe/notify_client.h"
#include "json/writer.h"

#include <stdio.h>
#include <string.h>

static const char *const state_names[APPROVAL_STATES] = {
    [APPROVAL_PENDING] = "pending", [APPROVAL_APPROVED] = "approved",
    [APPROVAL_DENIED] = "denied",   [APPROVAL_EXPIRED] = "expired",
    [APPROVAL_USED] = "used",       [APPROVAL_REVOKED] = "revoked",
};

const char *approval_state_name(enum approval_state state)
{
    return state < APPROVAL_STATES ? state_names[state] : NULL;
}

enum approval_state approval_state_of(const char *name)
{
    enum approval_state state = 0;
    while (state < APPROVAL_STATES && strcmp(state_names[state], name) != 0)
        state++;
    return state;
}

void approval_reasons_write(uint32_t reasons, struct bytes *out)
{
    json_open_field(out, "reasons", '[');
    for (uint32_t bit = ASKS_ALWAYS; bit <= ASKS_CHECK; bit <<= 1)
        if (reasons & bit)
            json_string(out, approval_asks_name(bit));
    json_close(out, ']');
}

static void write_word(struct bytes *out, const char *key, const char *text)
{
    json_string_field(out, key, text && text[0] ? text : NULL);
}

static void write_scopes(const struct approval *approval, struct bytes *out)
{
    json_open_field(out, "scopes", '[');
    for (uint32_t bit = REACH_ONCE; bit <= REACH_TIME; bit <<= 1)
        if ((approval->reaches & bit) && (bit != REACH_SESSION || approval->session[0]))
            json_string(out, approval_scope_name(bit));
    json_close(out, ']');
}

static void write_key_name(const struct approvals *approvals, const char *id, const char *field,
                           struct bytes *out)
{
    char name[API_KEY_NAME_SIZE];
    approvals_key_name(approvals, id, name);
    write_word(out, field, name);
}

int approval_write(struct approvals *approvals, const struct approval *approval, bool with_card,
                   struct bytes *out, error *err)
{
    bool is_decided = approval->decided_ms > 0;
    auto_bytes card = { 0 };
    if (with_card && approvals_card(approvals, approval, &card, err) < 0)
        return -1;
    json_open(out, '{');
    json_string_field(out, "id", approval->id);
    json_string_field(out, "state", approval_state_name(approval->state));
    json_string_field(out, "asker", approval->asker[0] ? approval->asker : "owner");
    write_key_name(approvals, approval->asker, "asker_name", out);
    write_word(out, "tenant", approval->tenant);
    json_string_field(out, "policy", approval->policy);
    write_word(out, "session", approval->session);
    json_string_field(out, "sha256", approval->sha256);
    json_moment_field(out, "asked_at", approval->asked_ms);
    json_moment_field(out, "expires_at", approval->expires_ms);
    approval_reasons_write(approval->reasons, out);
    write_scopes(approval, out);
    json_string_field(out, "by", approval->is_out_of_band ? "out_of_band" : "terminal");
    json_moment_field(out, "decided_at", approval->decided_ms);
    write_word(out, "approver",
               !is_decided             ? NULL
               : approval->approver[0] ? approval->approver
                                       : "owner");
    write_key_name(approvals, is_decided ? approval->approver : "", "approver_name", out);
    write_word(out, "scope", approval->reach ? approval_scope_name(approval->reach) : NULL);
    json_moment_field(out, "until_at", approval->until_ms);
    write_word(out, "reason", approval->reason);
    write_word(out, "run", approval->run);
    if (with_card) {
        json_key(out, "card");
        if (card.size > 0)
            json_raw(out, card.data, card.size);
        else
            json_null(out);
    }
    json_close(out, '}');
    return 0;
}

static void write_if_any(struct bytes *out, const char *key, const char *text)
{
    if (text[0])
        json_string_field(out, key, text);
}

void approval_page(const char *url, const char *id, struct bytes *out)
{
    static const char place[] = "{id}";
    const char *found = url ? strstr(url, place) : NULL;
    if (found)
        bytes_print(out, "%.*s%s%s", (int) (found - url), url, id, found + strlen(place));
}

/* The fields of the webhook event, without code and without the approver's reason. */
static void write_event(struct bytes *out, const char *word, const struct approval *approval,
                        const char *page_url)
{
    auto_bytes url = { 0 };
    approval_page(page_url, approval->id, &url);
    char type[32];
    bool is_decided = approval->decided_ms > 0;
    (void) snprintf(type, sizeof type, "approval.%s", word);
    json_open(out, '{');
    json_string_field(out, "type", type);
    json_moment_field(out, "timestamp", wall_clock_ms());
    json_open_field(out, "data", '{');
    json_string_field(out, "approval", approval->id);
    json_string_field(out, "state", approval_state_name(approval->state));
    json_string_field(out, "asker", approval->asker[0] ? approval->asker : "owner");
    write_if_any(out, "tenant", approval->tenant);
    json_string_field(out, "policy", approval->policy);
    write_if_any(out, "session", approval->session);
    json_string_field(out, "sha256", approval->sha256);
    json_moment_field(out, "expires_at", approval->expires_ms);
    write_if_any(out, "url", bytes_text(&url));
    if (is_decided) {
        json_string_field(out, "approver", approval->approver[0] ? approval->approver : "owner");
        json_moment_field(out, "until_at", approval->until_ms);
        if (approval->reach)
            json_string_field(out, "scope", approval_scope_name(approval->reach));
    }
    json_close_all(out, "}}");
}

void approval_notify(const struct approvals *approvals, const char *word,
                     const struct approval *approval)
{
    auto_bytes body = { 0 };
    char id[64];
    (void) snprintf(id, sizeof id, "msg_%s_%s", word, approval->id + sizeof "apr_" - 1);
    write_event(&body, word, approval, approvals->page_url ? *approvals->page_url : NULL);
    notify_client_event(approvals->notify_client, id, &body);
}
