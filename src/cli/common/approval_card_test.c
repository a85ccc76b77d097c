/* approval_card_test.c - an approver at a terminal sees the whole request: no control byte hides a
 * part. */
#include "base/table.h"
#include "base/test.h"
#include "cli/common/approval_card.h"

#include <string.h>

static const char *printed(const char *json)
{
    static char text[4096];
    FILE *out = fmemopen(text, sizeof text, "w");
    json_object *approval = json_tokener_parse(json);
    require(out && approval, "no card from %s", json);
    card_print(out, approval);
    (void) fclose(out);
    (void) json_object_put(approval);
    return text;
}

TEST(nothing_is_left_out)
{
    static const struct {
        const char *card, *shown;
    } facts[] = {
        { "{\"code\": \"a\\nb\"}", "     2 | b\n" },
        { "{\"code\": \"a\\u0000b\"}", "     1 | a<U+0000>b\n" },
        { "{\"code\": \"a\\rb\\u001b[2Jc\"}", "a<U+000D>b<U+001B>[2Jc\n" },
        { "{\"code\": \"if \\u3164 or a\"}", "if <U+3164> or a\n" },
        { "{\"code\": \"import \u043es, sys\"}", "import <U+043E>s, sys\n" },
        { "{\"code\": \"# \u043c\u0438\u0440 = x\"}", "# \xD0\xBC\xD0\xB8\xD1\x80 = x\n" },
        { "{\"code\": \"\uff4f\uff53.system\"}", "<U+FF4F><U+FF53>.system\n" },
        { "{\"code\": \"a\", \"language\": \"bash\"}", "language  bash\n" },
        { "{\"code\": \"a\", \"filename\": \"conftest.py\"}", "filename  conftest.py\n" },
        { "{\"files\": [{\"path\": \"x.sh\", \"bytes\": 8, \"text\": \"id\\n#\\u0000\\nrm *\"}]}",
          "     2 | #<U+0000>\n     3 | rm *\n" },
        { "{\"files\": [{\"path\": \"a\\nb\", \"bytes\": 8, \"text\": null}]}",
          "--- a<U+000A>b, 8 bytes: NOT SHOWN" },
        { "{\"stdin\": {\"bytes\": 3, \"text\": \"\\u0000id\"}}", "     1 | <U+0000>id\n" },
        { "{\"command\": [\"sh\", \"-c\", \"a\\nb\"]}", "sh -c a<U+000A>b\n" },
    };
    for_each(fact, facts) {
        char json[512];
        (void) snprintf(json, sizeof json, "{\"id\": \"apr_0\", \"card\": %s}", fact->card);
        const char *text = printed(json);
        expect(strstr(text, fact->shown), "'%s' is not in\n%s", fact->shown, text);
    }
}

TESTS(CASE(nothing_is_left_out))
