/* canonical_tree_test.c - equal values are written equally (RFC 8785). */
#include "json/canonical_tree.h"

#include "base/table.h"
#include "base/test.h"

#include <string.h>

TEST(a_value_has_one_spelling)
{
    static const struct {
        const char *given, *canonical;
    } facts[] = {
        /* clang-format off */
        { "{\"b\": 1, \"a\": [true, false, null]}",  "{\"a\":[true,false,null],\"b\":1}" },
        { "{}",                                      "{}" },
        { "\"\\u20ac$\\u000f\\nA'\\u0042\\\\\\\"/\"", "\"\xe2\x82\xac$\\u000f\\nA'B\\\\\\\"/\"" },
        /* UTF-16 puts U+1F600 before U+FB33, UTF-8 behind it */
        { "{\"\\ufb33\": 1, \"\\ud83d\\ude00\": 2}", "{\"\xf0\x9f\x98\x80\":2,\"\xef\xac\xb3\":1}" },
        { "-0.0",                                    "0" },
        { "1.0",                                     "1" },
        { "0.5",                                     "0.5" },
        { "-12.25",                                  "-12.25" },
        { "1e2",                                     "100" },
        { "1e21",                                    "1e+21" },
        { "1e20",                                    "100000000000000000000" },
        { "123456789012345678e3",                    "123456789012345680000" },
        { "0.000001",                                "0.000001" },
        { "0.0000001",                               "1e-7" },
        { "1.5e-10",                                 "1.5e-10" },
        { "333333333.33333329",                      "333333333.3333333" },
        { "4.50",                                    "4.5" },
        { "2e-3",                                    "0.002" },
        { "5e-324",                                  "5e-324" },
        { "1.7976931348623157e308",                  "1.7976931348623157e+308" },
        /* clang-format on */
    };
    for_each(fact, facts) {
        struct json_object *value = json_tokener_parse(fact->given);
        auto_bytes out = { 0 };
        canonical_write(value, &out);
        expect(strcmp(bytes_text(&out), fact->canonical) == 0, "%s became %s", fact->given,
               bytes_text(&out));
        (void) json_object_put(value);
    }
}

TESTS(CASE(a_value_has_one_spelling))
