#include "base/table.h"
#include "base/test.h"
#include "doors/mcp/mcp.h"

#include <string.h>

TEST(only_a_text_without_nul_is_a_text)
{
    static const struct {
        const char *json, *text;
    } facts[] = {
        { "{\"a\":\"b\"}", "b" },
        { "{\"a\":\"\"}", "" },
        { "{\"a\":1}", NULL },
        { "{\"a\":null}", NULL },
        { "{\"a\":\"\\u0000\"}", NULL },
        { "{\"b\":\"b\"}", NULL },
        { "[\"a\"]", NULL },
        { "\"a\"", NULL },
    };
    for_each(fact, facts) {
        struct json_object *value = json_tokener_parse(fact->json);
        const char *text = member_text(value, "a");
        expect(fact->text ? text && strcmp(text, fact->text) == 0 : !text, "%s", fact->json);
        (void) json_object_put(value);
    }
    expect(!json_member(NULL, "a"), "nothing has no members");
}

TESTS(CASE(only_a_text_without_nul_is_a_text))
