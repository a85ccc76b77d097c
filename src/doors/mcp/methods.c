/* methods.c - the methods of the protocol, a row each, and those that need no tool. */
#include "base/table.h"
#include "doors/mcp/mcp.h"
#include "json/writer.h"

#include <microhttpd.h>
#include <string.h>

enum { TTL_MS = 60000 };

static void initialize(struct mcp_call *call)
{
    struct mcp_client *client = call->client ? call->client : mcp_client_begin(call);
    if (!client) {
        mcp_fail(call, MCP_INTERNAL, "too many clients at once; try again");
        return;
    }
    client->version = call->version;
    client->capabilities = mcp_capabilities_read(call->capabilities);
    mcp_claim_client(&client->claim, json_member(call->params, "clientInfo"));
    exchange_add_header(call->exchange, "Mcp-Session-Id", client->id);
    struct bytes *out = mcp_result_open(call, NULL);
    json_string_field(out, "protocolVersion", call->version);
    json_key(out, "capabilities");
    bytes_print(out, "{%s}", call->catalogue->capabilities);
    json_key(out, "serverInfo");
    mcp_write_server(call, out);
    json_string_field(out, "instructions", call->catalogue->instructions);
    mcp_result_close(call);
}

static void discover(struct mcp_call *call)
{
    struct bytes *out = mcp_result_open(call, NULL);
    json_open_field(out, "supportedVersions", '[');
    json_string(out, MCP_NEWEST);
    json_string(out, "2025-11-25");
    json_string(out, "2025-06-18");
    json_string(out, "2025-03-26");
    json_close(out, ']');
    json_key(out, "capabilities");
    bytes_print(out, "{%s}",
                call->catalogue->stateless ? call->catalogue->stateless
                                           : call->catalogue->capabilities);
    json_string_field(out, "instructions", call->catalogue->instructions);
    mcp_write_caching(call, out);
    mcp_result_close(call);
}

void mcp_write_caching(const struct mcp_call *call, struct bytes *out)
{
    if (call->era != ERA_STATELESS)
        return;
    json_count_field(out, "ttlMs", TTL_MS);
    json_string_field(out, "cacheScope", "private");
}

void mcp_acknowledge(struct mcp_call *call)
{
    (void) mcp_result_open(call, NULL);
    mcp_result_close(call);
}

/* Over HTTP, a call without a handshake is cancelled by closing its connection: clients that share
 * a key may use the same ids for their calls. */
static void cancelled(struct mcp_call *call)
{
    struct json_object *id = json_member(call->params, "requestId");
    struct mcp_call *meant = id && call->client ? mcp_call_find(call, id) : NULL;
    if (meant) {
        meant->is_cancelled = true;
        mcp_call_wake(meant);
    }
}

static void noted(struct mcp_call *call)
{
    (void) call;
}

/* clang-format off */
static const struct mcp_method methods[] = {
    { "initialize",                     ERA_HANDSHAKE, NULL,   initialize },
    { "notifications/initialized",      ERA_HANDSHAKE, NULL,   noted },
    { "notifications/cancelled",        ERA_BOTH,      NULL,   cancelled },
    { "ping",                           ERA_HANDSHAKE, NULL,   mcp_acknowledge },
    { "server/discover",                ERA_STATELESS, NULL,   discover },
    { "subscriptions/listen",           ERA_STATELESS, NULL,   mcp_subscriptions_listen },
    { "tools/list",                     ERA_BOTH,      NULL,   mcp_tools_list },
    { "tools/call",                     ERA_BOTH,      "name", mcp_tools_call },
    { "resources/list",                 ERA_BOTH,      NULL,   mcp_resources_list },
    { "resources/templates/list",       ERA_BOTH,      NULL,   mcp_resource_templates_list },
    { "resources/read",                 ERA_BOTH,      "uri",  mcp_resources_read },
    { "tasks/get",                      ERA_STATELESS, "taskId", mcp_tasks_get },
    { "tasks/update",                   ERA_STATELESS, "taskId", mcp_tasks_update },
    { "tasks/cancel",                   ERA_STATELESS, "taskId", mcp_tasks_cancel },
};
/* clang-format on */

static const struct mcp_method *find(const struct mcp_method *rows, size_t count,
                                     const struct mcp_call *call)
{
    for (size_t i = 0; i < count; i++)
        if ((rows[i].era & call->era) && strcmp(rows[i].name, call->method_name) == 0)
            return &rows[i];
    return NULL;
}

const struct mcp_method *mcp_method_find(const struct mcp_call *call)
{
    const struct mcp_method *method =
        find(call->catalogue->methods, call->catalogue->method_count, call);
    return method ? method : find(methods, COUNT_OF(methods), call);
}

/* A request with the name of a notification is not done, and a notification with that of a request
 * neither. */
static bool is_notification(const char *name)
{
    return strncmp(name, "notifications/", 14) == 0;
}

void mcp_dispatch(struct mcp_call *call)
{
    if (!call->method_name) {
        mcp_client_answered(call);
        return;
    }
    call->method = mcp_method_find(call);
    if (!call->id) {
        if (call->method && is_notification(call->method_name))
            call->method->serve(call);
        mcp_accept(call);
        return;
    }
    if (mcp_headers_check(call) < 0)
        return;
    if (!call->method || is_notification(call->method_name)) {
        if (call->era == ERA_STATELESS)
            call->status = MHD_HTTP_NOT_FOUND;
        mcp_fail(call, MCP_NO_METHOD, "no method is named '%.80s'", call->method_name);
        return;
    }
    call->method->serve(call);
}
