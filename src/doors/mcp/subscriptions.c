/* subscriptions.c - subscriptions/listen: acknowledged at once, then silent but for comments that
 * keep it alive. Tools and resources do not change while a daemon serves them. */
#include "doors/mcp/mcp.h"
#include "json/writer.h"

#include <microhttpd.h>

static void listen_on(struct mcp_call *call)
{
    (void) call;
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
    call->proceed = listen_on;
}
