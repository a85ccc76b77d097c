#include "base/table.h"
#include "base/test.h"
#include "doors/mcp/mcp.h"

#include <string.h>

static const struct property arguments[] = {
    { "code", "string 1..5", "the code" },
    { "count", "count 1..9", "how many", true },
    { "seconds", "number 1..9", "how long", true },
    { "word", "=mine,ours", "whose", true },
    { "list", "[]string", "several", true },
    { "flag", "boolean", "whether", true },
    { 0 },
};
static const struct mcp_tool tool = { .name = "tool", .arguments = arguments };

TEST(arguments_are_checked_by_their_rows)
{
    static const struct {
        const char *json, *why; /* NULL: they are valid */
    } facts[] = {
        { "{\"code\":\"1\"}", NULL },
        { "{\"code\":\"1\",\"count\":9,\"seconds\":1.5,\"word\":\"ours\",\"list\":[],\"flag\":"
          "true}",
          NULL },
        { "{}", "needs the argument 'code'" },
        { "{\"code\":null}", "needs the argument 'code'" },
        { "{\"code\":\"\"}", "'code' must have 1 to 5 bytes" },
        { "{\"code\":\"123456\"}", "'code' must have 1 to 5 bytes" },
        { "{\"code\":1}", "'code' must be a text" },
        { "{\"code\":\"a\\u0000b\"}", "'code' has a NUL" },
        { "{\"code\":\"1\",\"count\":0}", "'count' must be a whole number from 1 to 9" },
        { "{\"code\":\"1\",\"count\":1.0}", "'count' must be a whole number" },
        { "{\"code\":\"1\",\"seconds\":\"2\"}", "'seconds' must be a number" },
        { "{\"code\":\"1\",\"word\":\"min\"}", "'word' must be one of mine,ours" },
        { "{\"code\":\"1\",\"word\":\"mine,ours\"}", "'word' must be one of" },
        { "{\"code\":\"1\",\"list\":{}}", "'list' must be a list" },
        { "{\"code\":\"1\",\"flag\":0}", "'flag' must be true or false" },
        { "{\"code\":\"1\",\"more\":0}", "has no argument 'more'" },
    };
    for_each(fact, facts) {
        struct json_object *given = json_tokener_parse(fact->json);
        error err = { 0 };
        int result = mcp_arguments_check(&tool, given, &err);
        expect(fact->why ? result < 0 && strstr(err.text, fact->why) : result == 0, "%s gave '%s'",
               fact->json, err.text);
        (void) json_object_put(given);
    }
}

TEST(an_input_schema_names_what_is_required)
{
    auto_bytes text = { 0 };
    mcp_input_schema_write(&tool, &text);
    struct json_object *schema = json_tokener_parse(bytes_text(&text));
    struct json_object *required = json_member(schema, "required");
    expect(required && json_object_array_length(required) == 1, "%s", bytes_text(&text));
    expect(json_member(json_member(schema, "properties"), "word"), "%s", bytes_text(&text));
    (void) json_object_put(schema);
}

TEST(an_output_schema_stands_alone)
{
    auto_bytes text = { 0 };
    mcp_output_schema_write("RunOrCellResult", &text);
    struct json_object *schema = json_tokener_parse(bytes_text(&text));
    expect(json_member(json_member(schema, "$defs"), "Limits"), "its definitions are there");
    expect(!strstr(bytes_text(&text), "#/components"), "nothing leads out of it");
    (void) json_object_put(schema);
}

TESTS(CASE(arguments_are_checked_by_their_rows), CASE(an_input_schema_names_what_is_required),
      CASE(an_output_schema_stands_alone))
