/* canonical_writer_test.c - the examples of the RFC that have integers only. */
#include "json/canonical_writer.h"

#include "base/table.h"
#include "base/test.h"

#include <string.h>

TEST(keys_are_ordered_as_the_rfc_shows)
{
    /* RFC 8785, section 3.2.3: the expected order of the values. */
    static const struct {
        const char *key, *value;
    } members[] = {
        { "\xE2\x82\xAC", "Euro Sign" },
        { "\r", "Carriage Return" },
        { "\xEF\xAC\xB3", "Hebrew Letter Dalet With Dagesh" },
        { "1", "One" },
        { "\xF0\x9F\x98\x80", "Emoji: Grinning Face" },
        { "\xC2\x80", "Control" },
        { "\xC3\xB6", "Latin Small Letter O With Diaeresis" },
    };
    struct jcs json = { 0 };
    error err;
    jcs_open(&json, '{');
    for_each(member, members)
        jcs_text_field(&json, member->key, member->value);
    jcs_close(&json, '}');
    require(jcs_end(&json, &err) == 0, "%s", err.text);
    static const char wanted[] =
        "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\xC2\x80\":\"Control\",\"\xC3\xB6\":\"Latin "
        "Small Letter O With Diaeresis\",\"\xE2\x82\xAC\":\"Euro "
        "Sign\",\"\xF0\x9F\x98\x80\":\"Emoji: "
        "Grinning Face\",\"\xEF\xAC\xB3\":\"Hebrew Letter Dalet With Dagesh\"}";
    expect(strcmp(bytes_text(&json.out), wanted) == 0, "it is %s", bytes_text(&json.out));
    jcs_done(&json);
}

TEST(strings_are_spelled_as_the_rfc_shows)
{
    /* RFC 8785, section 3.2.2.2, and each rule of it by itself. */
    static const struct {
        const char *text, *json;
    } facts[] = {
        { "\xE2\x82\xAC$\x0F\nA'B\"\\\\\"/", "\"\xE2\x82\xAC$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"" },
        { "\b\t\n\f\r", "\"\\b\\t\\n\\f\\r\"" },
        { "\x01\x1F\x7F", "\"\\u0001\\u001f\x7F\"" },
        { "</script>", "\"</script>\"" },
        { "\xF0\x9F\x98\x80", "\"\xF0\x9F\x98\x80\"" },
        { "a\xFFz", "\"a\xEF\xBF\xBDz\"" },                             /* no UTF-8 */
        { "\xC0\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\"" },                 /* overlong */
        { "\xED\xA0\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"" }, /* half a pair */
        { "", "\"\"" },
    };
    for_each(fact, facts) {
        struct jcs json = { 0 };
        error err;
        jcs_text(&json, fact->text, strlen(fact->text));
        expect(jcs_end(&json, &err) == 0 && strcmp(bytes_text(&json.out), fact->json) == 0,
               "it is %s, not %s", bytes_text(&json.out), fact->json);
        jcs_done(&json);
    }
}

TEST(literals_and_lists_are_spelled_as_the_rfc_shows)
{
    struct jcs json = { 0 };
    error err;
    jcs_open(&json, '{');
    jcs_open_field(&json, "literals", '[');
    jcs_null(&json);
    jcs_flag(&json, true);
    jcs_flag(&json, false);
    jcs_close(&json, ']');
    jcs_open_field(&json, "empty", '{');
    jcs_close(&json, '}');
    jcs_integer_field(&json, "b", -7);
    jcs_integer_field(&json, "a", (INT64_C(1) << 53) - 1);
    jcs_close(&json, '}');
    expect(jcs_end(&json, &err) == 0 &&
               strcmp(bytes_text(&json.out),
                      "{\"a\":9007199254740991,\"b\":-7,\"empty\":{},\"literals\":"
                      "[null,true,false]}") == 0,
           "it is %s", bytes_text(&json.out));
    jcs_done(&json);
}

static void write_large_number(struct jcs *json)
{
    jcs_integer(json, INT64_C(1) << 53);
}

static void write_same_key_twice(struct jcs *json)
{
    jcs_open(json, '{');
    jcs_null_field(json, "a");
    jcs_null_field(json, "b");
    jcs_null_field(json, "a");
    jcs_close(json, '}');
}

static void write_value_without_key(struct jcs *json)
{
    jcs_open(json, '{');
    jcs_null(json);
    jcs_close(json, '}');
}

static void write_open_list(struct jcs *json)
{
    jcs_open(json, '[');
}

static void write_wrong_bracket(struct jcs *json)
{
    jcs_open(json, '[');
    jcs_close(json, '}');
}

TEST(what_has_no_canonical_form_is_refused)
{
    static const struct {
        const char *what;
        void (*write)(struct jcs *json);
    } facts[] = {
        { "a number that a double does not hold", write_large_number },
        { "a key twice", write_same_key_twice },
        { "a value without a key", write_value_without_key },
        { "an open list", write_open_list },
        { "a wrong bracket", write_wrong_bracket },
    };
    for_each(fact, facts) {
        struct jcs json = { 0 };
        error err;
        fact->write(&json);
        expect(jcs_end(&json, &err) < 0, "%s was written", fact->what);
        jcs_done(&json);
    }
}

TESTS(CASE(keys_are_ordered_as_the_rfc_shows), CASE(strings_are_spelled_as_the_rfc_shows),
      CASE(literals_and_lists_are_spelled_as_the_rfc_shows),
      CASE(what_has_no_canonical_form_is_refused))
