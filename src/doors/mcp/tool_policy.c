/* tool_policy.c - policy_explain: describes what a policy allows. */
#include "doors/mcp/mcp.h"
#include "engine/service/service_tools.h"

void mcp_policy_explain(struct mcp_call *call)
{
    struct exchange *exchange = call->exchange;
    struct tool_words words = { .policy = member_text(call->arguments, "policy") };
    error err;
    if (service_tool_words(exchange->service, &exchange->caller, &words, &err) < 0)
        mcp_tool_fail(call, &err);
    else
        mcp_tool_text(call, bytes_text(&words.text), false);
    bytes_done(&words.text);
}
