/* fixtures.c - the door of the fixtures: tools that answer what the suite expects, and those that
 * say something on the way. */
#include "fixtures.h"
#include "base/table.h"
#include "json/writer.h"

#include <stdio.h>
#include <string.h>

enum { STEP_MS = 50, STEPS = 3, TOOLS_MAX = 64 };

#define NO_ARGUMENTS   "{\"type\":\"object\",\"properties\":{}}"
#define ONE_TEXT(text) "\"content\":[{\"type\":\"text\",\"text\":\"" text "\"}]"

void fixture_result(struct mcp_call *call, const char *members)
{
    struct bytes *out = mcp_result_open(call, NULL);
    bytes_print(out, "%s%s", call->era == ERA_STATELESS ? "," : "", members);
    mcp_result_close(call);
}

/* --- answered at once ------------------------------------------------------------------------- */

static const struct {
    const char *name, *members;
} canned[] = {
    { "test_simple_text", ONE_TEXT("This is a simple text response for testing.") },
    { "test_image_content",
      "\"content\":[{\"type\":\"image\",\"data\":\"" PNG "\",\"mimeType\":\"image/png\"}]" },
    { "test_audio_content",
      "\"content\":[{\"type\":\"audio\",\"data\":\"" WAV "\",\"mimeType\":\"audio/wav\"}]" },
    { "test_embedded_resource",
      "\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":\"test://embedded-resource\","
      "\"mimeType\":\"text/plain\",\"text\":\"This is an embedded resource content.\"}}]" },
    { "test_multiple_content_types",
      "\"content\":[{\"type\":\"text\",\"text\":\"Multiple content types test:\"},"
      "{\"type\":\"image\",\"data\":\"" PNG "\",\"mimeType\":\"image/png\"},"
      "{\"type\":\"resource\",\"resource\":{\"uri\":\"test://mixed-content-resource\","
      "\"mimeType\":\"application/json\",\"text\":\"{\\\"test\\\":\\\"data\\\",\\\"value\\\":123}\""
      "}}]" },
    { "test_error_handling",
      ONE_TEXT("This tool intentionally returns an error for testing") ",\"isError\":true" },
    { "json_schema_2020_12_tool", ONE_TEXT("checked") },
    { "test_headers", ONE_TEXT("checked") },
};

static void answer(struct mcp_call *call)
{
    for_each(row, canned)
        if (strcmp(row->name, call->tool->name) == 0)
            fixture_result(call, row->members);
}

/* --- steps ------------------------------------------------------------------------------------ */

static void write_step(struct mcp_call *call, bool is_log)
{
    static const char *const words[STEPS] = { "Tool execution started", "Tool processing data",
                                              "Tool execution completed" };
    struct bytes *out;
    if (is_log && call->era == ERA_STATELESS && !json_member(call->meta, MCP_META "logLevel"))
        return;
    if (is_log) {
        out = mcp_notice_open(call, "notifications/message", NULL);
        json_string_field(out, "level", "info");
        json_string_field(out, "data", words[call->progress]);
        mcp_notice_close(call);
    } else if (call->progress_token) {
        const char *token =
            json_object_to_json_string_ext(call->progress_token, JSON_C_TO_STRING_PLAIN);
        out = mcp_notice_open(call, "notifications/progress", NULL);
        bytes_print(out, "\"progressToken\":%s,\"progress\":%u,\"total\":100", token,
                    call->progress * 50);
        mcp_notice_close(call);
    }
}

static void step(struct mcp_call *call)
{
    bool is_log = strstr(call->tool->name, "logging") != NULL;
    int64_t since_ms = now_ms() - call->began_ms;
    while (call->progress < STEPS && since_ms >= call->progress * STEP_MS) {
        write_step(call, is_log);
        call->progress++;
    }
    if (call->progress == STEPS)
        fixture_result(call, ONE_TEXT("three steps were taken"));
    else
        mcp_call_look_at(call, (deadline){ call->began_ms + call->progress * STEP_MS });
}

static void take_steps(struct mcp_call *call)
{
    if (mcp_may_stream(call))
        mcp_stream(call);
    call->proceed = step;
    step(call);
}

/* --- all of it -------------------------------------------------------------------------------- */

static const char schema_2020[] =
    "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\",\"$defs\":{"
    "\"address\":{\"$anchor\":\"addressDef\",\"type\":\"object\",\"properties\":{\"street\":"
    "{\"type\":\"string\"},\"city\":{\"type\":\"string\"}}}},\"properties\":{\"name\":{\"type\":"
    "\"string\"},\"address\":{\"$ref\":\"#/$defs/address\"},\"contactMethod\":{\"type\":\"string\","
    "\"enum\":[\"phone\",\"email\"]},\"phone\":{\"type\":\"string\"},\"email\":{\"type\":"
    "\"string\"}},\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":[\"email\"]}]}],"
    "\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},\"required\":"
    "[\"contactMethod\"]},\"then\":{\"required\":[\"phone\"]},\"else\":{\"required\":[\"email\"]},"
    "\"additionalProperties\":false}";

static const char schema_headers[] =
    "{\"type\":\"object\",\"properties\":{\"region\":{\"type\":\"string\",\"x-mcp-header\":"
    "\"Region\"},\"priority\":{\"type\":\"integer\",\"x-mcp-header\":\"Priority\"},\"verbose\":"
    "{\"type\":\"boolean\",\"x-mcp-header\":\"Verbose\"}}}";

#define FIXTURE(tool, begins)                                                          \
    {                                                                                  \
        .name = tool, .text = "A fixture", .right = RIGHT_ANY, .schema = NO_ARGUMENTS, \
        .begin = begins                                                                \
    }

static const struct mcp_tool plain[] = {
    { .name = "test_headers",
      .text = "A fixture",
      .right = RIGHT_ANY,
      .schema = schema_headers,
      .begin = answer },
    FIXTURE("test_simple_text", answer),
    FIXTURE("test_image_content", answer),
    FIXTURE("test_audio_content", answer),
    FIXTURE("test_embedded_resource", answer),
    FIXTURE("test_multiple_content_types", answer),
    FIXTURE("test_error_handling", answer),
    FIXTURE("test_tool_with_logging", take_steps),
    FIXTURE("test_logging_tool", take_steps),
    FIXTURE("test_tool_with_progress", take_steps),
    { .name = "json_schema_2020_12_tool",
      .text = "Tool with JSON Schema 2020-12 features",
      .right = RIGHT_ANY,
      .schema = schema_2020,
      .begin = answer },
};

static struct mcp_tool all_tools[TOOLS_MAX];
static struct mcp_catalogue catalogue = {
    .name = "glovebox-fixtures",
    .title = "fixtures of the conformance suite",
    .instructions = "Fixtures",
    .tools = all_tools,
    .tools_are_fixed = true,
    .capabilities = "\"tools\":{\"listChanged\":false},\"resources\":{\"subscribe\":true,"
                    "\"listChanged\":false},\"prompts\":{\"listChanged\":false},\"completions\":{},"
                    "\"logging\":{}",
    .stateless = "\"tools\":{\"listChanged\":false},\"resources\":{\"subscribe\":true,"
                 "\"listChanged\":false},\"prompts\":{\"listChanged\":false},\"completions\":{},"
                 "\"logging\":{},\"extensions\":{\"" MCP_META "tasks\":{}}",
    .tasks = &fixture_tasks,
};

__attribute__((constructor)) static void collect(void)
{
    memcpy(all_tools, plain, sizeof plain);
    memcpy(all_tools + COUNT_OF(plain), fixture_ask_tools,
           fixture_ask_tool_count * sizeof *fixture_ask_tools);
    memcpy(all_tools + COUNT_OF(plain) + fixture_ask_tool_count, fixture_task_tools,
           fixture_task_tool_count * sizeof *fixture_task_tools);
    catalogue.tool_count = COUNT_OF(plain) + fixture_ask_tool_count + fixture_task_tool_count;
    catalogue.methods = fixture_methods;
    catalogue.method_count = fixture_method_count;
}

const struct door mcp_fixture_door = { mcp_tables, .own = &catalogue };
