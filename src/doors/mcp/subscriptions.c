/* subscriptions.c - subscriptions/listen: acknowledged at once, then only comments that keep it
 * alive, until the tools change: their descriptions depend on templates and policies, which are
 * checked with each comment, every 10 s. */
#include "doors/mcp/mcp.h"
#include "engine/service/service_tools.h"
#include "json/writer.h"

#include <microhttpd.h>

static bool is_asked_for(const struct mcp_call *call, const char *name)
{
    struct json_object *value = json_member(json_member(call->params, "notifications"), name);
    return json_object_is_type(value, json_type_boolean) && json_object_get_boolean(value);
}

static struct bytes *open_notice(struct mcp_call *call, const char *method)
{
    struct bytes *out = mcp_notice_open(call, method, NULL);
    json_open_field(out, "_meta", '{');
    json_key(out, MCP_META "subscriptionId");
    mcp_write_id(call, out);
    json_close(out, '}');
    return out;
}

static void listen_on(struct mcp_call *call)
{
    uint64_t version = service_tool_words_version(call->exchange->service);
    if (call->work.seen == version)
        return;
    call->work.seen = version;
    (void) open_notice(call, "notifications/tools/list_changed");
    mcp_notice_close(call);
}

static void listen_to_nothing(struct mcp_call *call)
{
    (void) call;
}

/* The message is not needed any more; there may be many such streams, open for long. */
static void drop_message(struct mcp_call *call)
{
    struct json_object *id = json_object_get(call->id);
    (void) json_object_put(call->root);
    call->root = call->id = id;
    call->params = call->meta = call->capabilities = call->progress_token = NULL;
    call->method_name = call->method->name;
}

void mcp_subscriptions_listen(struct mcp_call *call)
{
    bool hears_tools = is_asked_for(call, "toolsListChanged") && !call->catalogue->tools_are_fixed;
    if (json_member(json_member(call->params, "notifications"), "taskIds") &&
        !mcp_may_be_task(call)) {
        mcp_fail_needs_tasks(call);
        return;
    }
    if (!mcp_may_stream(call)) {
        call->status = MHD_HTTP_NOT_ACCEPTABLE;
        mcp_fail(call, MCP_INVALID_REQUEST, "subscriptions need Accept: text/event-stream");
        return;
    }
    mcp_stream(call);
    struct bytes *out = open_notice(call, "notifications/subscriptions/acknowledged");
    json_open_field(out, "notifications", '{');
    if (hears_tools)
        json_flag_field(out, "toolsListChanged", true);
    json_close(out, '}');
    mcp_notice_close(call);
    drop_message(call);
    exchange_rest(call->exchange);
    call->work.seen = service_tool_words_version(call->exchange->service);
    call->proceed = hears_tools ? listen_on : listen_to_nothing;
}
