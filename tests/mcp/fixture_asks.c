/* fixture_asks.c - tools that ask the client something before they answer: on the stream of a
 * handshake, or with the rounds of a stateless call. */
#include "base/table.h"
#include "fixtures.h"
#include "json/writer.h"

#include <microhttpd.h>
#include <stdio.h>
#include <string.h>

#define NAME_SCHEMA(name, type)                                                               \
    "\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"" name "\":{\"type\":\"" type \
    "\"}},\"required\":[\"" name "\"]}"
#define SAMPLING(words, tokens)                                                         \
    "\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"" words \
    "\"}}],\"maxTokens\":" tokens

static const char ask_name[] = "\"message\":\"What is your name?\"," NAME_SCHEMA("name", "string");
static const char defaults[] =
    "\"message\":\"Please review and update the form fields with defaults\",\"requestedSchema\":{"
    "\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"default\":\"John Doe\"},"
    "\"age\":{\"type\":\"integer\",\"default\":30},\"score\":{\"type\":\"number\",\"default\":95.5}"
    ",\"status\":{\"type\":\"string\",\"enum\":[\"active\",\"inactive\",\"pending\"],\"default\":"
    "\"active\"},\"verified\":{\"type\":\"boolean\",\"default\":true}},\"required\":[]}";
static const char enums[] =
    "\"message\":\"Please select options from the enum fields\",\"requestedSchema\":{\"type\":"
    "\"object\",\"properties\":{\"untitledSingle\":{\"type\":\"string\",\"enum\":[\"option1\","
    "\"option2\",\"option3\"]},\"titledSingle\":{\"type\":\"string\",\"oneOf\":[{\"const\":"
    "\"value1\",\"title\":\"First Option\"},{\"const\":\"value2\",\"title\":\"Second Option\"},"
    "{\"const\":\"value3\",\"title\":\"Third Option\"}]},\"legacyEnum\":{\"type\":\"string\","
    "\"enum\":[\"opt1\",\"opt2\",\"opt3\"],\"enumNames\":[\"Option One\",\"Option Two\",\"Option "
    "Three\"]},\"untitledMulti\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"enum\":["
    "\"option1\",\"option2\",\"option3\"]}},\"titledMulti\":{\"type\":\"array\",\"items\":{"
    "\"anyOf\":[{\"const\":\"value1\",\"title\":\"First Choice\"},{\"const\":\"value2\",\"title\":"
    "\"Second Choice\"},{\"const\":\"value3\",\"title\":\"Third Choice\"}]}}},\"required\":[]}";

/* One question, and the answer that is printed after `words`. */
static const struct asking {
    const char *tool, *capability, *name, *method, *params, *state, *words;
} askings[] = {
    /* clang-format off */
    { "test_elicitation", "elicitation", "answer", "elicitation/create", NULL, NULL, "User response: " },
    { "test_elicitation_sep1034_defaults", "elicitation", "answer", "elicitation/create", defaults, NULL, "Elicitation completed: " },
    { "test_elicitation_sep1330_enums", "elicitation", "answer", "elicitation/create", enums, NULL, "Elicitation completed: " },
    { "test_streaming_elicitation", "elicitation", "answer", "elicitation/create", ask_name, NULL, "Elicitation completed: " },
    { "test_sampling", "sampling", "answer", "sampling/createMessage", NULL, NULL, "LLM response: " },
    { "test_missing_capability", "sampling", "answer", "sampling/createMessage", SAMPLING("hello", "10"), NULL, "LLM response: " },
    { "test_input_required_result_elicitation", "elicitation", "user_name", "elicitation/create", ask_name, NULL, "Hello: " },
    { "test_input_required_result_sampling", "sampling", "capital_question", "sampling/createMessage", SAMPLING("What is the capital of France?", "100"), NULL, "LLM response: " },
    { "test_input_required_result_list_roots", "roots", "client_roots", "roots/list", "", NULL, "Roots: " },
    { "test_input_required_result_request_state", "elicitation", "confirm", "elicitation/create", "\"message\":\"Please confirm\"," NAME_SCHEMA("ok", "boolean"), "confirm", "state-ok " },
    { "test_input_required_result_tampered_state", "elicitation", "confirm", "elicitation/create", "\"message\":\"Please confirm\"," NAME_SCHEMA("ok", "boolean"), "confirm", "state-ok " },
    /* clang-format on */
};

static const struct asking *asking_of(const struct mcp_call *call)
{
    for_each(row, askings)
        if (strcmp(row->tool, call->tool->name) == 0)
            return row;
    return &askings[0];
}

static void tell(struct mcp_call *call, const char *words, struct json_object *answer)
{
    auto_bytes text = { 0 };
    const char *action = member_text(answer, "action");
    struct json_object *content = json_member(answer, "content");
    bytes_add_text(&text, words);
    if (action)
        bytes_print(&text, "action=%s, content=%s", action,
                    json_object_to_json_string_ext(content, JSON_C_TO_STRING_PLAIN));
    else
        bytes_add_text(&text, json_object_to_json_string_ext(answer, JSON_C_TO_STRING_PLAIN));
    mcp_tool_text(call, bytes_text(&text), false);
}

/* What the arguments say is asked. */
static const char *params_of(const struct mcp_call *call, const struct asking *asking,
                             struct bytes *room)
{
    if (asking->params)
        return asking->params;
    bool samples = strcmp(asking->capability, "sampling") == 0;
    const char *said = member_text(call->arguments, samples ? "prompt" : "message");
    if (samples)
        bytes_add_text(room, "\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\","
                             "\"text\":");
    else
        bytes_add_text(room, "\"message\":");
    struct json_object *text = json_object_new_string(said ? said : "");
    bytes_add_text(room, json_object_to_json_string_ext(text, JSON_C_TO_STRING_PLAIN));
    (void) json_object_put(text);
    bytes_add_text(room,
                   samples ? "}}],\"maxTokens\":100"
                           : ",\"requestedSchema\":{\"type\":\"object\",\"properties\":{"
                             "\"username\":{\"type\":\"string\",\"description\":\"User's response\""
                             "},\"email\":{\"type\":\"string\",\"description\":\"User's email "
                             "address\"}},\"required\":[\"username\",\"email\"]}");
    return bytes_text(room);
}

static void answered(struct mcp_call *call)
{
    if (call->client_answer)
        tell(call, asking_of(call)->words, mcp_answer_to(call, ""));
}

static bool is_answer(struct json_object *answer)
{
    return json_object_is_type(answer, json_type_object);
}

/* The call cannot be served without this capability of the client. */
static void fail_needs(struct mcp_call *call, const char *capability)
{
    char data[128];
    if (call->era == ERA_HANDSHAKE) {
        (void) snprintf(data, sizeof data, "this client has not declared %s", capability);
        mcp_tool_text(call, data, true);
        return;
    }
    (void) snprintf(data, sizeof data, "{\"requiredCapabilities\":{\"%s\":{}}}", capability);
    call->status = MHD_HTTP_BAD_REQUEST;
    mcp_fail_with(call, MCP_NEEDS_CAPABILITY, data, "Missing required client capability");
}

static void ask(struct mcp_call *call)
{
    const struct asking *asking = asking_of(call);
    char state[MCP_STATE_SIZE];
    auto_bytes room = { 0 };
    int round = mcp_state_read(call, state);
    if (round < 0)
        return;
    if (!mcp_may_ask(call, asking->capability)) {
        fail_needs(call, asking->capability);
        return;
    }
    struct json_object *answer = mcp_answer_to(call, asking->name);
    if (is_answer(answer) && (!asking->state || round > 0)) {
        tell(call, asking->words, answer);
        return;
    }
    const struct mcp_question question = { asking->name, asking->method,
                                           params_of(call, asking, &room) };
    mcp_ask(call, &question, asking->state);
    call->proceed = answered;
}

/* --- more than one round, more than one question ---------------------------------------------- */

static void ask_twice(struct mcp_call *call)
{
    static const struct mcp_question questions[] = {
        { "step1", "elicitation/create",
          "\"message\":\"Step 1: What is your name?\"," NAME_SCHEMA("name", "string") },
        { "step2", "elicitation/create",
          "\"message\":\"Step 2: What is your favorite color?\"," NAME_SCHEMA("color", "string") },
    };
    char state[MCP_STATE_SIZE];
    if (mcp_state_read(call, state) < 0)
        return;
    bool was_asked = strcmp(state, "1") == 0 && is_answer(mcp_answer_to(call, "step1"));
    if (strcmp(state, "2") == 0 && is_answer(mcp_answer_to(call, "step2")))
        mcp_tool_text(call, "both steps are done", false);
    else
        mcp_ask(call, &questions[was_asked], was_asked ? "2" : "1");
}

static void ask_three(struct mcp_call *call)
{
    static const char requests[] =
        "{\"user_name\":{\"method\":\"elicitation/create\",\"params\":{\"message\":\"What is your "
        "name?\"," NAME_SCHEMA(
            "name",
            "string") "}},\"greeting\":{\"method\":"
                      "\"sampling/createMessage\",\"params\":{" SAMPLING(
                          "Generate a greeting",
                          "50") "}},"
                                "\"client_roots\":{\"method\":\"roots/list\",\"params\":{}}}";
    char state[MCP_STATE_SIZE];
    int round = mcp_state_read(call, state);
    if (round < 0)
        return;
    bool is_whole = is_answer(mcp_answer_to(call, "user_name")) &&
                    is_answer(mcp_answer_to(call, "greeting")) &&
                    is_answer(mcp_answer_to(call, "client_roots"));
    if (round > 0 && is_whole)
        mcp_tool_text(call, "all three were answered", false);
    else
        mcp_ask_all(call, requests, "three");
}

static void ask_what_it_can(struct mcp_call *call)
{
    static const struct {
        const char *capability, *request;
    } rows[] = {
        { "sampling", "\"greeting\":{\"method\":\"sampling/createMessage\",\"params\":{" SAMPLING(
                          "Generate a greeting", "50") "}}" },
        { "elicitation", "\"user_name\":{\"method\":\"elicitation/create\",\"params\":{\"message\":"
                         "\"What is your name?\"," NAME_SCHEMA("name", "string") "}}" },
    };
    auto_bytes requests = { 0 };
    bytes_add_text(&requests, "{");
    for_each(row, rows)
        if (mcp_may_ask(call, row->capability))
            bytes_print(&requests, "%s%s", requests.size > 1 ? "," : "", row->request);
    bytes_add_text(&requests, "}");
    mcp_ask_all(call, bytes_text(&requests), NULL);
}

/* NOLINTBEGIN(bugprone-macro-parentheses): initializers */
#define NO_ARGUMENTS "{\"type\":\"object\",\"properties\":{}}"
#define ONE_ARGUMENT(name)                         \
    "{\"type\":\"object\",\"properties\":{\"" name \
    "\":{\"type\":\"string\"}},\"required\":[\"" name "\"]}"
#define FIXTURE(tool, begins)                                                          \
    {                                                                                  \
        .name = tool, .text = "A fixture", .right = RIGHT_ANY, .schema = NO_ARGUMENTS, \
        .begin = begins                                                                \
    }

/* NOLINTEND(bugprone-macro-parentheses) */

const struct mcp_tool fixture_ask_tools[] = {
    { .name = "test_elicitation",
      .text = "A fixture",
      .right = RIGHT_ANY,
      .schema = ONE_ARGUMENT("message"),
      .begin = ask },
    { .name = "test_sampling",
      .text = "A fixture",
      .right = RIGHT_ANY,
      .schema = ONE_ARGUMENT("prompt"),
      .begin = ask },
    FIXTURE("test_elicitation_sep1034_defaults", ask),
    FIXTURE("test_elicitation_sep1330_enums", ask),
    FIXTURE("test_streaming_elicitation", ask),
    FIXTURE("test_missing_capability", ask),
    FIXTURE("test_input_required_result_elicitation", ask),
    FIXTURE("test_input_required_result_sampling", ask),
    FIXTURE("test_input_required_result_list_roots", ask),
    FIXTURE("test_input_required_result_request_state", ask),
    FIXTURE("test_input_required_result_tampered_state", ask),
    FIXTURE("test_input_required_result_multi_round", ask_twice),
    FIXTURE("test_input_required_result_multiple_inputs", ask_three),
    FIXTURE("test_input_required_result_capabilities", ask_what_it_can),
};
const size_t fixture_ask_tool_count = COUNT_OF(fixture_ask_tools);
