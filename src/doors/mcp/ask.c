/* ask.c - questions to the user of a client. A call without a handshake is answered with them, and
 * made again with the answers; one of a handshake asks on its stream, and is woken by the
 * answer. */
#include "base/table.h"
#include "doors/mcp/mcp.h"
#include "json/writer.h"

#include <stdio.h>
#include <string.h>

static unsigned questions; /* so far */

static const struct {
    const char *name;
    unsigned bit;
} capabilities[] = { { "elicitation", CAN_ELICIT },
                     { "sampling", CAN_SAMPLE },
                     { "roots", CAN_ROOTS } };

unsigned mcp_capabilities_read(struct json_object *declared)
{
    struct json_object *elicitation = json_member(declared, "elicitation");
    unsigned bits = 0;
    for_each(row, capabilities)
        if (json_member(declared, row->name))
            bits |= row->bit;
    if (json_member(elicitation, "url")) {
        bits |= CAN_ELICIT_URL;
        if (!json_member(elicitation, "form")) /* if only another mode is given */
            bits &= ~(unsigned) CAN_ELICIT;
    }
    return bits;
}

static bool can(const struct mcp_call *call, unsigned bit)
{
    if (call->era == ERA_STATELESS)
        return mcp_capabilities_read(call->capabilities) & bit;
    return call->client && call->client->kind == CLIENT_HANDSHAKE && mcp_may_stream(call) &&
           (call->client->capabilities & bit);
}

bool mcp_may_ask(const struct mcp_call *call, const char *capability)
{
    for_each(row, capabilities)
        if (strcmp(row->name, capability) == 0)
            return can(call, row->bit);
    return false;
}

/* Since the revision 2025-11-25. */
bool mcp_may_lead_to_page(const struct mcp_call *call)
{
    return can(call, CAN_ELICIT_URL) &&
           (call->era == ERA_STATELESS || strcmp(call->version, "2025-11-25") == 0);
}

void mcp_ask_all(struct mcp_call *call, const char *requests, const char *state)
{
    struct bytes *out = mcp_result_open(call, "input_required");
    json_key(out, "inputRequests");
    json_raw(out, requests, strlen(requests));
    if (state) {
        auto_bytes sealed = { 0 };
        mcp_state_write(call, state, &sealed);
        json_string_field(out, "requestState", bytes_text(&sealed));
    }
    mcp_result_close(call);
}

/* On the stream of a handshake's call; `proceed` is called when the answer has come. */
static void ask_on_stream(struct mcp_call *call, const struct mcp_question *question)
{
    mcp_stream(call);
    (void) snprintf(call->server_request, sizeof call->server_request, "glovebox-%u", ++questions);
    (void) json_object_put(call->client_answer);
    call->client_answer = NULL;
    struct bytes *out = mcp_notice_open(call, question->method, call->server_request);
    bytes_print(out, "%s", question->params);
    mcp_notice_close(call);
}

void mcp_ask(struct mcp_call *call, const struct mcp_question *question, const char *state)
{
    if (call->era == ERA_HANDSHAKE) {
        ask_on_stream(call, question);
        return;
    }
    auto_bytes requests = json_begin('{');
    json_key(&requests, question->name);
    json_open(&requests, '{');
    json_string_field(&requests, "method", question->method);
    json_key(&requests, "params");
    bytes_print(&requests, "{%s}", question->params);
    json_close_all(&requests, "}}");
    mcp_ask_all(call, bytes_text(&requests), state);
}

struct json_object *mcp_answer_to(const struct mcp_call *call, const char *name)
{
    if (call->era == ERA_STATELESS)
        return json_member(json_member(call->params, "inputResponses"), name);
    struct json_object *result = json_member(call->client_answer, "result");
    return result ? result : json_member(call->client_answer, "error");
}
