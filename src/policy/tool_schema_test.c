/* tool_schema_test.c - the schema of the tool that runs code, in each format and for what a policy
 * allows. */
#include "policy/tool_schema.h"

#include "base/table.h"
#include "base/test.h"

#include <json.h>
#include <string.h>

static struct policy policy;

static void begin(void)
{
    memset(&policy, 0, sizeof policy);
    (void) snprintf(policy.name, sizeof policy.name, "mine");
    (void) snprintf(policy.languages[0], sizeof policy.languages[0], "python");
    policy.language_count = 1;
    limits_init(&policy.limits);
    limits_init(&policy.maximum);
    policy.limits.wall = 10000;
    policy.maximum.wall = 60000;
}

/* Finds a member by a path of members and positions, as in "tools.0.name". */
static struct json_object *at(struct json_object *json, const char *path)
{
    char name[64];
    while (json && *path) {
        size_t size = strcspn(path, ".");
        (void) snprintf(name, sizeof name, "%.*s", (int) size, path);
        if (json_object_is_type(json, json_type_array))
            json = json_object_array_get_idx(json, strtoul(name, NULL, 10));
        else if (!json_object_object_get_ex(json, name, &json))
            json = NULL;
        path += size + (path[size] == '.');
    }
    return json;
}

TEST(each_format_has_the_parameters_where_its_readers_look)
{
    static const struct {
        const char *format, *name, *parameters;
    } facts[] = {
        { "openai", "0.function.name", "0.function.parameters" },
        { "anthropic", "0.name", "0.input_schema" },
        { "mcp", "tools.0.name", "tools.0.inputSchema" },
        { "openapi", "paths./v1/runs.post.operationId",
          "paths./v1/runs.post.requestBody.content.application/json.schema" },
    };
    error err;
    begin();
    for_each(fact, facts) {
        auto_bytes out = { 0 };
        require(tool_schema_write(&policy, fact->format, &out, &err) == 0, "%s", err.text);
        struct json_object *json = json_tokener_parse(bytes_text(&out));
        struct json_object *parameters = at(json, fact->parameters);
        const char *name = json_object_get_string(at(json, fact->name));
        expect(name && strcmp(name, "run_code") == 0, "%s: %s", fact->format, name);
        const char *language = json_object_get_string(at(parameters, "properties.language.enum.0"));
        expect(language && strcmp(language, "python") == 0, "%s: %s", fact->format, language);
        struct json_object *wall = at(parameters, "properties.limits.properties.wall_ms");
        expect(json_object_get_int64(at(wall, "maximum")) == 60000, "%s: maximum", fact->format);
        expect(json_object_get_int64(at(wall, "default")) == 10000, "%s: default", fact->format);
        (void) json_object_put(json);
    }
}

TEST(mcp_clients_see_whether_the_network_can_be_reached)
{
    error err;
    for (int i = 0; i < 2; i++) {
        auto_bytes out = { 0 };
        begin();
        policy.network = i ? POLICY_NETWORK_RULES : POLICY_NETWORK_NONE;
        require(tool_schema_write(&policy, "mcp", &out, &err) == 0, "%s", err.text);
        struct json_object *json = json_tokener_parse(bytes_text(&out));
        expect(json_object_get_boolean(at(json, "tools.0.annotations.openWorldHint")) == i, "%d",
               i);
        (void) json_object_put(json);
    }
}

TEST(other_formats_are_refused)
{
    static const char *const formats[] = { "", "soap", "MCP" };
    auto_bytes out = { 0 };
    error err;
    begin();
    for_each(format, formats)
        expect(tool_schema_write(&policy, *format, &out, &err) < 0 && err.code == ERR_BAD_REQUEST,
               "%s", *format);
    expect(out.size == 0, "nothing is written");
}

TESTS(CASE(each_format_has_the_parameters_where_its_readers_look),
      CASE(mcp_clients_see_whether_the_network_can_be_reached), CASE(other_formats_are_refused))
