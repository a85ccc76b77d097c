/* expect_test.c - an expectation that would not be checked is refused, and the message names it. */
#include "base/test.h"
#include "policy/expect.h"

#include "base/table.h"

#include <stdio.h>
#include <string.h>

TEST(patterns_are_what_every_reader_reads_alike)
{
    static const struct {
        const char *pattern;
        int result;
    } facts[] = {
        /* clang-format off */
        { "",                 0  }, { "^a$",            0  }, { "a|b|",          0  }, { "(a|b)+?c{2,3}", 0  },
        { "(?:a)*",           0  }, { "[a-z_]{1,}",     0  }, { "[^\\]]",        0  }, { "\\d\\W\\.\\/",  0  },
        { "\\x41\\u00e9",     0  }, { "\\b\\w+\\b",     0  }, { "[\\-\\d]",      0  }, { "a{1000}",       0  },
        { "^\\^\\$$",         0  }, { "()",             0  }, { "\xc3\xa9+",     0  }, { "(((a)))",       0  },
        { "(",                -1 }, { ")",              -1 }, { "[",             -1 }, { "]",             -1 },
        { "}",                -1 }, { "{",              -1 }, { "a{",            -1 }, { "a{,3}",         -1 },
        { "a{3,2}",           -1 }, { "a{1001}",        -1 }, { "a{99999999999999999999}", -1 },
        { "*",                -1 }, { "a**",            -1 }, { "a+*",           -1 }, { "^*",            -1 },
        { "a|*",              -1 }, { "(*a)",           -1 }, { "\\b+",          -1 }, { "a{2}{3}",       -1 },
        { "(?=a)",            -1 }, { "(?!a)",          -1 }, { "(?<=a)b",       -1 }, { "(?P<n>a)",      -1 },
        { "(?<n>a)",          -1 }, { "(?i)a",          -1 }, { "(?#x)",         -1 }, { "(?",            -1 },
        { "(a)\\1",           -1 }, { "\\0",            -1 }, { "\\k<n>",        -1 }, { "\\p{L}",        -1 },
        { "\\A",              -1 }, { "\\Z",            -1 }, { "\\cA",          -1 }, { "\\",            -1 },
        { "\\x4",             -1 }, { "\\u12g4",        -1 }, { "[]",            -1 }, { "[^]",           -1 },
        { "[[a]",             -1 }, { "[a&&b]",         -1 }, { "[\\b]",         -1 }, { "[a",            -1 },
        /* clang-format on */
    };
    for_each(fact, facts) {
        error err;
        int result = expectation_check_pattern(fact->pattern, strlen(fact->pattern), &err);
        expect(result == fact->result, "'%s' gave %d", fact->pattern, result);
        expect(result == 0 || strstr(err.text, "the pattern "), "'%s' says %s", fact->pattern,
               err.text);
    }
    error err;
    char deep[64];
    memset(deep, '(', 21);
    memset(deep + 21, ')', 21);
    expect(expectation_check_pattern(deep, 42, &err) < 0, "21 groups in each other are taken");
    expect(expectation_check_pattern("a\0b", 3, &err) < 0, "a NUL is taken");
}

static int check(const char *text, struct expect_needs *needs, error *err)
{
    struct json_object *json = json_tokener_parse(text);
    int result = expectation_check(json, needs, err);
    (void) json_object_put(json);
    return result;
}

TEST(an_expectation_says_what_it_needs)
{
    static const struct {
        const char *text;
        bool contents, result;
    } facts[] = {
        /* clang-format off */
        { "{\"stdout\":{\"max_bytes\":1}}",                                     false, false },
        { "{\"secrets\":\"allow\",\"others\":\"forbid\"}",                      false, false },
        { "{\"secrets\":\"forbid\"}",                                           true,  false },
        { "{\"result\":{\"schema\":true}}",                                     false, true  },
        { "{\"artifacts\":[{\"name\":\"a\",\"required\":false}]}",              false, false },
        { "{\"artifacts\":[{\"name\":\"a\"},{\"pattern\":\"*\",\"type\":\"image/*\"}]}", true, false },
        { "{\"artifacts\":[{\"name\":\"a\",\"schema\":{}}]}",                   true,  false },
        /* clang-format on */
    };
    for_each(fact, facts) {
        error err = { 0 };
        struct expect_needs needs = { 0 };
        expect(check(fact->text, &needs, &err) == 0, "%s: %s", fact->text, err.text);
        expect(needs.contents == fact->contents && needs.result == fact->result, "%s needs %d, %d",
               fact->text, needs.contents, needs.result);
    }
}

TEST(a_path_is_judged_part_by_part)
{
    static const struct {
        const char *path;
        int result;
    } facts[] = {
        /* clang-format off */
        { "a",       0  }, { "a/b",    0  }, { "a../b",  0  }, { "..a/b",  0  }, { "a..b",   0  }, { "...",    0  },
        { ".a/.b",   0  }, { "a/b..",  0  }, { "a/...",  0  },
        { "",        -1 }, { ".",      -1 }, { "..",     -1 }, { "../a",   -1 }, { "a/..",   -1 }, { "a/../b", -1 },
        { "./a",     -1 }, { "a/.",    -1 }, { "a/./b",  -1 }, { "/a",     -1 }, { "a/",     -1 }, { "a//b",   -1 },
        /* clang-format on */
    };
    static const char *const keys[] = { "name", "pattern" };
    for_each(key, keys)
        for_each(fact, facts) {
            char text[80];
            error err = { 0 };
            struct expect_needs needs = { 0 };
            (void) snprintf(text, sizeof text, "{\"artifacts\":[{\"%s\":\"%s\"}]}", *key,
                            fact->path);
            expect(check(text, &needs, &err) == fact->result, "%s: %s", text, err.text);
        }
}

/* The text is a valid schema apart from one keyword. */
TEST(a_refusal_names_its_place)
{
    static const struct {
        const char *text, *place;
    } facts[] = {
        /* clang-format off */
        { "{\"stdout\":{\"schema\":{\"properties\":{\"a\":{\"items\":{\"fromat\":1}}}}}}",
          "expect.stdout.schema/properties/a/items/fromat: " },
        { "{\"artifacts\":[{\"name\":\"a\",\"schema\":{\"anyOf\":[{},{\"minimum\":null}]}}]}",
          "expect.artifacts[0].schema/anyOf/1/minimum: " },
        { "{\"result\":{\"schema\":{\"$defs\":{\"x\":{\"$ref\":\"#/$defs/y\"}}}}}",
          "expect.result.schema/$defs/x/$ref: " },
        { "{\"stdout\":{\"schema\":{\"patternProperties\":{\"(\":{}}}}}",
          "expect.stdout.schema/patternProperties/(: the pattern has ( without )" },
        { "{\"stdout\":{\"schema\":null}}",       "expect.stdout.schema: " },
        { "{\"stdout\":{\"schema\":{\"enum\":[{\"a\":[9007199254740993]}]}}}", "expect.stdout.schema/enum: " },
        { "{\"stdout\":{\"schema\":{\"const\":-99999999999999999999}}}", "expect.stdout.schema/const: " },
        { "{\"stdout\":{\"schema\":{\"enum\":[6666666666666666666.0]}}}", "expect.stdout.schema/enum: " },
        { "{\"stdout\":{\"schema\":{\"maximum\":1e999}}}", "expect.stdout.schema/maximum: " },
        { "{\"secrets\":\"forbid\\u0000\"}", "'expect.secrets' is " },
        { "{\"others\":\"forbid\\u0000\"}",  "'expect.others' is " },
        { "{\"stdout\":{\"type\":\"text/plain\\u0000x\"}}", "expect.stdout.type " },
        { "{\"stdout\":{\"schema\":{\"type\":\"null\\u0000\"}}}", "expect.stdout.schema/type: " },
        { "{\"stdout\":{\"schema\":{\"$defs\":{\"a\":false},\"$ref\":\"#/$defs/a\\u0000\"}}}", "expect.stdout.schema/$ref: " },
        { "{\"stdout\":{\"schema\":{\"required\":[1]}}}", "expect.stdout.schema/required: " },
        { "{\"stdout\":{\"schema\":{\"dependentRequired\":{\"a\":\"b\"}}}}", "expect.stdout.schema/dependentRequired: " },
        { "{\"stdout\":{\"schema\":{\"allOf\":[]}}}", "expect.stdout.schema/allOf: " },
        { "{\"stdout\":{\"schema\":{\"type\":[]}}}", "expect.stdout.schema/type: " },
        { "{\"stdout\":{\"schema\":{\"uniqueItems\":1}}}", "expect.stdout.schema/uniqueItems: " },
        { "{\"stdout\":{\"schema\":{\"minLength\":-1}}}", "expect.stdout.schema/minLength: " },
        { "{\"stdout\":{\"schema\":{\"$schema\":\"https://json-schema.org/draft/2020-12/schema/\"}}}", "expect.stdout.schema/$schema: " },
        /* clang-format on */
    };
    for_each(fact, facts) {
        error err = { 0 };
        struct expect_needs needs;
        expect(check(fact->text, &needs, &err) < 0, "%s is taken", fact->text);
        expect(strncmp(err.text, fact->place, strlen(fact->place)) == 0, "%s says: %s", fact->text,
               err.text);
        expect(err.code == ERR_BAD_REQUEST, "%s is %d", fact->text, err.code);
    }
}

/* Names come from the caller; long ones must not overflow the buffer. */
TEST(a_place_of_any_length_fits)
{
    struct json_object *schema = json_object_new_object();
    struct json_object *at = schema;
    char name[400];
    error err;
    struct expect_needs needs;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (int i = 0; i < 20; i++) {
        struct json_object *properties = json_object_new_object();
        struct json_object *inner = json_object_new_object();
        (void) json_object_object_add(properties, name, inner);
        (void) json_object_object_add(at, "properties", properties);
        at = inner;
    }
    (void) json_object_object_add(at, "none", NULL);
    struct json_object *out = json_object_new_object();
    (void) json_object_object_add(out, "schema", schema);
    struct json_object *whole = json_object_new_object();
    (void) json_object_object_add(whole, "stdout", out);
    expect(expectation_check(whole, &needs, &err) < 0, "it is taken");
    expect(strstr(err.text, "nnnnn/properties"), "it says %s", err.text);
    (void) json_object_put(whole);
}

TESTS(CASE(patterns_are_what_every_reader_reads_alike), CASE(an_expectation_says_what_it_needs),
      CASE(a_path_is_judged_part_by_part), CASE(a_refusal_names_its_place),
      CASE(a_place_of_any_length_fits))
