/* subscriptions.c - subscriptions/listen: acknowledged at once, then silent but for comments that
 * keep it alive. Tools and resources do not change while a daemon serves them. */
#include "doors/mcp/mcp.h"
#include "json/writer.h"

#include <microhttpd.h>

static void listen_on(struct mcp_call *call)
{
    (void) call;
}

/* Of the message no more is needed; many are open for as long as their hosts run. */
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
    if (!mcp_may_stream(call)) {
        call->status = MHD_HTTP_NOT_ACCEPTABLE;
        mcp_fail(call, MCP_INVALID_REQUEST, "subscriptions need Accept: text/event-stream");
        return;
    }
    mcp_stream(call);
    struct bytes *out = mcp_notice_open(call, "notifications/subscriptions/acknowledged", NULL);
    json_key(out, "_meta");
    json_open(out, '{');
    json_key(out, MCP_META "subscriptionId");
    mcp_write_id(call, out);
    json_close(out, '}');
    json_key(out, "notifications");
    json_open(out, '{');
    json_close(out, '}');
    mcp_notice_close(call);
    drop_message(call);
    call->proceed = listen_on;
}
