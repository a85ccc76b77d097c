/* tool_schema.c - see tool_schema.h. */
#include "policy/tool_schema.h"

#include "base/table.h"
#include "json/member.h"

#include <json.h>
#include <stdio.h>
#include <string.h>

enum { CODE_MAX = 10 * 1024 * 1024, DESCRIPTION_SIZE = 1024 };

static const char tool_name[] = "run_code";

static void add(struct json_object *object, const char *name, struct json_object *value)
{
    (void) json_object_object_add(object, name, value);
}

static struct json_object *typed(const char *type, const char *description)
{
    struct json_object *schema = json_object_new_object();
    member_set_text(schema, "type", type);
    if (description)
        member_set_text(schema, "description", description);
    return schema;
}

/* A number in the unit of requests: processors, not thousandths. */
static struct json_object *amount(enum limit_id id, uint64_t value)
{
    return limit_rows[id].unit == UNIT_MILLI ? json_object_new_double((double) value / 1000)
                                             : json_object_new_int64((int64_t) value);
}

static struct json_object *limit_schema(const struct policy *policy, enum limit_id id)
{
    const struct limit_row *row = &limit_rows[id];
    uint64_t max = limit_get(&policy->maximum, id);
    struct json_object *schema = typed(row->unit == UNIT_MILLI ? "number" : "integer", row->text);
    bool is_off = limit_may_be_off(id) && max == 0;
    add(schema, "minimum",
        row->min == 0 && limit_may_be_off(id) && !is_off ? amount(id, 1) : amount(id, row->min));
    add(schema, "maximum", amount(id, is_off ? row->max : max));
    add(schema, "default", amount(id, limit_get(&policy->limits, id)));
    return schema;
}

static struct json_object *parameters(const struct policy *policy)
{
    struct json_object *root = typed("object", NULL), *properties = json_object_new_object();
    struct json_object *code =
        typed("string", "The program. What it prints and the files that it makes in "
                        "/workspace come back.");
    struct json_object *language = typed("string", "What the code is written in.");
    struct json_object *languages = json_object_new_array();
    struct json_object *limits =
        typed("object", "To ask for less, or for more within the maximum.");
    struct json_object *each = json_object_new_object(), *required = json_object_new_array();
    add(code, "minLength", json_object_new_int(1));
    add(code, "maxLength", json_object_new_int(CODE_MAX));
    for (size_t i = 0; i < policy->language_count; i++)
        (void) json_object_array_add(languages, json_object_new_string(policy->languages[i]));
    add(language, "enum", languages);
    for (enum limit_id id = 0; id < LIMITS; id++)
        add(each, limit_rows[id].json_name, limit_schema(policy, id));
    add(limits, "properties", each);
    add(limits, "additionalProperties", json_object_new_boolean(false));
    add(properties, "code", code);
    add(properties, "language", language);
    add(properties, "limits", limits);
    add(root, "properties", properties);
    (void) json_object_array_add(required, json_object_new_string("code"));
    (void) json_object_array_add(required, json_object_new_string("language"));
    add(root, "required", required);
    add(root, "additionalProperties", json_object_new_boolean(false));
    return root;
}

static void write_description(const struct policy *policy, char *text, size_t size)
{
    char wall[32], memory[32];
    limit_print(LIMIT_wall, policy->limits.wall, wall, sizeof wall);
    limit_print(LIMIT_memory, policy->limits.memory, memory, sizeof memory);
    (void) snprintf(text, size,
                    "Runs code in a fresh sandbox and gives back its output, its files and how it "
                    "ended. %s%s%s, %s of memory. %s%s",
                    policy->description, policy->description[0] ? " " : "", wall, memory,
                    policy->network == POLICY_NETWORK_RULES
                        ? "Only listed destinations of the network can be reached."
                        : "No network.",
                    policy->precheck.is_on ? " The code is looked at before it runs." : "");
}

static struct json_object *array_of(struct json_object *item)
{
    struct json_object *array = json_object_new_array();
    (void) json_object_array_add(array, item);
    return array;
}

static struct json_object *for_openai(const struct policy *policy, const char *description)
{
    struct json_object *tool = json_object_new_object(), *function = json_object_new_object();
    member_set_text(tool, "type", "function");
    member_set_text(function, "name", tool_name);
    member_set_text(function, "description", description);
    add(function, "parameters", parameters(policy));
    add(tool, "function", function);
    return array_of(tool);
}

static struct json_object *for_anthropic(const struct policy *policy, const char *description)
{
    struct json_object *tool = json_object_new_object();
    member_set_text(tool, "name", tool_name);
    member_set_text(tool, "description", description);
    add(tool, "input_schema", parameters(policy));
    return array_of(tool);
}

static struct json_object *for_mcp(const struct policy *policy, const char *description)
{
    struct json_object *root = json_object_new_object(), *tool = json_object_new_object();
    struct json_object *hints = json_object_new_object();
    member_set_text(tool, "name", tool_name);
    member_set_text(tool, "title", "Run code");
    member_set_text(tool, "description", description);
    add(tool, "inputSchema", parameters(policy));
    add(hints, "readOnlyHint", json_object_new_boolean(false));
    add(hints, "destructiveHint", json_object_new_boolean(false));
    add(hints, "idempotentHint", json_object_new_boolean(false));
    add(hints, "openWorldHint", json_object_new_boolean(policy->network == POLICY_NETWORK_RULES));
    add(tool, "annotations", hints);
    add(root, "tools", array_of(tool));
    return root;
}

static struct json_object *content_of(struct json_object *schema)
{
    struct json_object *content = json_object_new_object(), *json = json_object_new_object();
    struct json_object *root = json_object_new_object();
    add(json, "schema", schema);
    add(content, "application/json", json);
    add(root, "content", content);
    return root;
}

/* Only the part that a model needs; /openapi.json of the daemon has the whole interface. */
static struct json_object *for_openapi(const struct policy *policy, const char *description)
{
    struct json_object *root = json_object_new_object(), *info = json_object_new_object();
    struct json_object *paths = json_object_new_object(), *path = json_object_new_object();
    struct json_object *post = json_object_new_object(), *schema = parameters(policy);
    struct json_object *chosen = typed("string", "The policy that the limits here are of.");
    struct json_object *properties = NULL, *required = NULL, *answers = json_object_new_object();
    struct json_object *body = NULL;
    struct json_object *answer = content_of(typed("object", "docs/api.md#the-result"));
    member_set_text(root, "openapi", "3.1.0");
    member_set_text(info, "title", "glovebox");
    member_set_text(info, "version", GLOVEBOX_VERSION);
    add(root, "info", info);
    member_set_text(chosen, "const", policy->name);
    (void) json_object_object_get_ex(schema, "properties", &properties);
    (void) json_object_object_get_ex(schema, "required", &required);
    add(properties, "policy", chosen);
    (void) json_object_array_add(required, json_object_new_string("policy"));
    body = content_of(schema);
    add(body, "required", json_object_new_boolean(true));
    member_set_text(answer, "description", "How it ended and what came of it");
    add(answers, "200", answer);
    member_set_text(post, "operationId", tool_name);
    member_set_text(post, "summary", "Runs code in a sandbox");
    member_set_text(post, "description", description);
    add(post, "requestBody", body);
    add(post, "responses", answers);
    add(path, "post", post);
    add(paths, "/v1/runs", path);
    add(root, "paths", paths);
    return root;
}

static const struct format {
    const char *name;
    struct json_object *(*write)(const struct policy *policy, const char *description);
} formats[] = {
    { "openai", for_openai },
    { "anthropic", for_anthropic },
    { "mcp", for_mcp },
    { "openapi", for_openapi },
};

int tool_schema_write(const struct policy *policy, const char *format, struct bytes *out,
                      error *err)
{
    char description[DESCRIPTION_SIZE];
    write_description(policy, description, sizeof description);
    for_each(row, formats) {
        if (strcmp(row->name, format) != 0)
            continue;
        auto_json root = row->write(policy, description);
        bytes_print(out, "%s\n",
                    json_object_to_json_string_ext(root, JSON_C_TO_STRING_PRETTY |
                                                             JSON_C_TO_STRING_NOSLASHESCAPE));
        return 0;
    }
    return fail(err, ERR_BAD_REQUEST, "format is openai, anthropic, mcp or openapi, not '%.40s'",
                format);
}
