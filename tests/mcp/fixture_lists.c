/* fixture_lists.c - what the product does not serve and the suite asks for: prompts, completion,
 * levels of logs, and resources with names. */
#include "base/table.h"
#include "fixtures.h"
#include "json/writer.h"

#include <stdio.h>
#include <string.h>

#define USER_TEXT(text) "{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"" text "\"}}"
#define ARGUMENT(name)  "{\"name\":\"" name "\",\"description\":\"An argument\",\"required\":true}"

static void fixture_page(struct mcp_call *call, const char *members)
{
    struct bytes *out = mcp_result_open(call, NULL);
    bytes_print(out, "%s%s", call->era == ERA_STATELESS ? "," : "", members);
    mcp_write_caching(call, out);
    mcp_result_close(call);
}

static void prompts_list(struct mcp_call *call)
{
    fixture_page(call,
                 "\"prompts\":[{\"name\":\"test_simple_prompt\",\"description\":\"A fixture\"},"
                 "{\"name\":\"test_prompt_with_arguments\",\"description\":\"A "
                 "fixture\",\"arguments\":[" ARGUMENT("arg1") "," ARGUMENT(
                     "arg2") "]},{\"name\":\"test_prompt_with_embedded_resource\","
                             "\"description\":\"A fixture\",\"arguments\":[" ARGUMENT(
                                 "resourceUri") "]},"
                                                "{\"name\":\"test_prompt_with_image\","
                                                "\"description\":\"A fixture\"},"
                                                "{\"name\":\"test_input_required_result_prompt\","
                                                "\"description\":\"A fixture\"}]");
}

static void ask_prompt(struct mcp_call *call)
{
    static const struct mcp_question question = {
        "user_context", "elicitation/create",
        "\"message\":\"What context should the prompt use?\",\"requestedSchema\":{\"type\":"
        "\"object\",\"properties\":{\"context\":{\"type\":\"string\"}},\"required\":[\"context\"]}"
    };
    if (mcp_answer_to(call, "user_context"))
        fixture_result(call, "\"messages\":[" USER_TEXT("With the context that was given.") "]");
    else
        mcp_ask(call, &question, NULL);
}

static const char *argument(const struct mcp_call *call, const char *name)
{
    const char *text = member_text(json_member(call->params, "arguments"), name);
    return text ? text : "";
}

static void prompt_with_arguments(struct mcp_call *call)
{
    char members[512];
    (void) snprintf(
        members, sizeof members,
        "\"messages\":[" USER_TEXT("Prompt with arguments: arg1='%.60s', arg2='%.60s'") "]",
        argument(call, "arg1"), argument(call, "arg2"));
    fixture_result(call, members);
}

static void prompt_with_resource(struct mcp_call *call)
{
    char members[512];
    (void) snprintf(members, sizeof members,
                    "\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"resource\","
                    "\"resource\":{\"uri\":\"%.100s\",\"mimeType\":\"text/plain\",\"text\":"
                    "\"Embedded resource content for testing.\"}}}," USER_TEXT(
                        "Please process the embedded resource above.") "]",
                    argument(call, "resourceUri"));
    fixture_result(call, members);
}

static void prompts_get(struct mcp_call *call)
{
    const char *name = member_text(call->params, "name");
    if (name && strcmp(name, "test_simple_prompt") == 0)
        fixture_result(call,
                       "\"messages\":[" USER_TEXT("This is a simple prompt for testing.") "]");
    else if (name && strcmp(name, "test_prompt_with_arguments") == 0)
        prompt_with_arguments(call);
    else if (name && strcmp(name, "test_prompt_with_embedded_resource") == 0)
        prompt_with_resource(call);
    else if (name && strcmp(name, "test_prompt_with_image") == 0)
        fixture_result(call, "\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"image\","
                             "\"data\":\"" PNG "\",\"mimeType\":\"image/png\"}}," USER_TEXT(
                                 "Please analyze the image above.") "]");
    else if (name && strcmp(name, "test_input_required_result_prompt") == 0)
        ask_prompt(call);
    else
        mcp_fail(call, MCP_INVALID_PARAMS, "no such prompt");
}

static void resources_list(struct mcp_call *call)
{
    fixture_page(call, "\"resources\":[{\"uri\":\"test://static-text\",\"name\":\"static-text\","
                       "\"mimeType\":\"text/plain\"},{\"uri\":\"test://static-binary\",\"name\":"
                       "\"static-binary\",\"mimeType\":\"image/png\"},{\"uri\":"
                       "\"test://watched-resource\",\"name\":\"watched-resource\"}]");
}

static void templates_list(struct mcp_call *call)
{
    fixture_page(call, "\"resourceTemplates\":[{\"uriTemplate\":\"test://template/{id}/data\","
                       "\"name\":\"template\",\"mimeType\":\"application/json\"}]");
}

static void resources_read(struct mcp_call *call)
{
    const char *uri = member_text(call->params, "uri");
    char id[32];
    char members[512];
    if (uri && strcmp(uri, "test://static-text") == 0) {
        fixture_page(call, "\"contents\":[{\"uri\":\"test://static-text\",\"mimeType\":"
                           "\"text/plain\",\"text\":\"This is the content of the static text "
                           "resource.\"}]");
    } else if (uri && strcmp(uri, "test://static-binary") == 0) {
        fixture_page(call, "\"contents\":[{\"uri\":\"test://static-binary\",\"mimeType\":"
                           "\"image/png\",\"blob\":\"" PNG "\"}]");
    } else if (uri && sscanf(uri, "test://template/%31[a-z0-9]/data", id) == 1) {
        (void) snprintf(
            members, sizeof members,
            "\"contents\":[{\"uri\":\"test://template/%s/data\",\"mimeType\":"
            "\"application/json\",\"text\":\"{\\\"id\\\":\\\"%s\\\",\\\"templateTest\\\""
            ":true,\\\"data\\\":\\\"Data for ID: %s\\\"}\"}]",
            id, id, id);
        fixture_page(call, members);
    } else {
        mcp_resources_read(call);
    }
}

static void acknowledge(struct mcp_call *call)
{
    (void) mcp_result_open(call, NULL);
    mcp_result_close(call);
}

static void complete(struct mcp_call *call)
{
    fixture_result(call, "\"completion\":{\"values\":[\"paris\",\"park\",\"party\"],\"total\":150,"
                         "\"hasMore\":true}");
}

const struct mcp_method fixture_methods[] = {
    { "prompts/list", ERA_BOTH, NULL, prompts_list },
    { "prompts/get", ERA_BOTH, "name", prompts_get },
    { "resources/list", ERA_BOTH, NULL, resources_list },
    { "resources/templates/list", ERA_BOTH, NULL, templates_list },
    { "resources/read", ERA_BOTH, "uri", resources_read },
    { "resources/subscribe", ERA_HANDSHAKE, NULL, acknowledge },
    { "resources/unsubscribe", ERA_HANDSHAKE, NULL, acknowledge },
    { "logging/setLevel", ERA_HANDSHAKE, NULL, acknowledge },
    { "completion/complete", ERA_BOTH, NULL, complete },
};
const size_t fixture_method_count = COUNT_OF(fixture_methods);
