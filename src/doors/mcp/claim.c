/* claim.c - what a client says of itself, for receipts: bounded, and on one line. */
#include "base/text.h"
#include "doors/mcp/mcp.h"

#include <stdio.h>
#include <string.h>

/* Copies the beginning of a text if it may be logged. */
static void take(char *room, size_t size, const char *text)
{
    if (text && text_find_unclean(text, strlen(text)) == strlen(text) && !strpbrk(text, "\t\n"))
        (void) snprintf(room, size, "%.*s", text_head(text, (int) size - 1), text);
}

void mcp_claim_client(struct client_claim *claim, struct json_object *info)
{
    take(claim->client, sizeof claim->client, member_text(info, "name"));
    take(claim->version, sizeof claim->version, member_text(info, "version"));
}

void mcp_claim(struct mcp_call *call)
{
    struct client_claim *claim = &call->claim;
    const char *parent = member_text(call->meta, "traceparent");
    const char *state = member_text(call->meta, "tracestate");
    if (call->era == ERA_STATELESS)
        mcp_claim_client(claim, json_member(call->meta, MCP_META "clientInfo"));
    else if (call->client)
        *claim = call->client->claim;
    (void) snprintf(claim->protocol, sizeof claim->protocol, "mcp/%s", call->version);
    take(claim->tool, sizeof claim->tool, call->tool->name);
    if (traceparent_is_valid(parent)) {
        take(claim->traceparent, sizeof claim->traceparent, parent);
        if (state && strlen(state) < sizeof claim->tracestate)
            take(claim->tracestate, sizeof claim->tracestate, state);
    }
    call->exchange->caller.claim = claim;
}
