/* approval.c - a run that a person must approve first: the client's user is asked, if the client
 * can ask. The answer comes from a program. It decides only if the policy accepts the decision of
 * the user who runs glovebox (by: terminal); else it only means that the approval may be decided by
 * now. */
#include "doors/mcp/mcp.h"
#include "engine/service/service_approvals.h"
#include "engine/service/service_callers.h"
#include "json/writer.h"

#include <stdio.h>
#include <string.h>

static const char question_name[] = "approve";

/* May the client's answer decide? */
static bool answer_decides(const struct mcp_call *call, const char *id)
{
    struct exchange *exchange = call->exchange;
    auto_json approval = NULL;
    auto_bytes json = { 0 };
    error err;
    if (!service_is_owner(&exchange->caller) ||
        service_approval(exchange->service, &exchange->caller, id, &json, &err) < 0 ||
        json_read(bytes_text(&json), json.size, &approval, &err) < 0)
        return false;
    const char *by = member_text(approval, "by");
    return by && strcmp(by, "terminal") == 0;
}

static void ask(struct mcp_call *call, const char *id, bool decides)
{
    auto_bytes params = { 0 };
    char message[400];
    (void) snprintf(message, sizeof message,
                    decides ? "glovebox: a person must approve this run before it begins. What it "
                              "would do: glovebox approvals %.40s"
                            : "glovebox: a person must approve this run elsewhere, with: glovebox "
                              "approve %.40s. Accept when that is done.",
                    id);
    if (call->era == ERA_STATELESS || strcmp(call->version, "2025-11-25") == 0)
        json_string_field(&params, "mode", "form");
    json_string_field(&params, "message", message);
    bytes_add_text(&params, ",\"requestedSchema\":{\"type\":\"object\",\"properties\":{");
    if (decides)
        bytes_add_text(&params, "\"decision\":{\"type\":\"string\",\"title\":\"Decision\",\"enum\":"
                                "[\"deny\",\"approve\"],\"default\":\"deny\"}");
    bytes_add_text(&params, decides ? "},\"required\":[\"decision\"]}" : "}}");
    const struct mcp_question question = { question_name, "elicitation/create",
                                           bytes_text(&params) };
    mcp_ask(call, &question, id);
}

/* The page has its own login: the client's answer, that its user is back, decides nothing. */
static void lead_to_page(struct mcp_call *call, const char *id, const char *url)
{
    auto_bytes params = { 0 };
    json_string_field(&params, "mode", "url");
    json_string_field(&params, "message",
                      "glovebox: a person must approve this run before it begins, on this page.");
    if (call->era == ERA_HANDSHAKE)
        json_string_field(&params, "elicitationId", id);
    json_string_field(&params, "url", url);
    const struct mcp_question question = { question_name, "elicitation/create",
                                           bytes_text(&params) };
    mcp_ask(call, &question, id);
}

bool mcp_approval_ask(struct mcp_call *call, const char *id)
{
    auto_bytes url = { 0 };
    if (call->work.has_asked || !id)
        return false;
    bool decides = answer_decides(call, id);
    if (!decides && mcp_may_lead_to_page(call))
        service_approval_page(call->exchange->service, id, &url);
    if (url.size == 0 && !mcp_may_ask(call, "elicitation"))
        return false;
    call->work.has_asked = true;
    (void) snprintf(call->work.approval, sizeof call->work.approval, "%s", id);
    if (url.size > 0)
        lead_to_page(call, id, bytes_text(&url));
    else
        ask(call, id, decides);
    return true;
}

static void decide(struct mcp_call *call, const char *id, const char *word)
{
    struct exchange *exchange = call->exchange;
    const struct approval_order order = {
        .id = id, .decision = word, .scope = "", .reason = "in the client"
    };
    auto_bytes json = { 0 };
    error err;
    if (service_decide_approval(exchange->service, &exchange->caller, &order, &json, &err) < 0)
        (void) snprintf(call->work.note, sizeof call->work.note,
                        "The decision was not accepted: %s.", err.text);
}

int mcp_approval_hear(struct mcp_call *call, const char *id)
{
    struct json_object *answer = mcp_answer_to(call, question_name);
    const char *action = member_text(answer, "action");
    const char *decision = member_text(json_member(answer, "content"), "decision");
    bool is_accepted = action && strcmp(action, "accept") == 0;
    char text[320];
    call->work.has_asked = true;
    if (is_accepted) {
        if (decision && answer_decides(call, id))
            decide(call, id, strcmp(decision, "approve") == 0 ? "approve" : "deny");
        return 0;
    }
    if (action && strcmp(action, "decline") == 0 && answer_decides(call, id))
        decide(call, id, "deny");
    (void) snprintf(text, sizeof text,
                    "pending_approval: nothing has run, and it was not approved here. A person can "
                    "still decide with: glovebox approve %.40s. Do not repeat the call before.",
                    id);
    mcp_tool_text(call, text, true);
    return -1;
}
