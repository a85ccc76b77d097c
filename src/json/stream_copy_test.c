/* stream_copy_test.c - what is copied of JSON that a program wrote, whole and in pieces. */
#include "json/stream_copy.h"

#include "base/table.h"
#include "base/test.h"

#include <sodium.h>
#include <string.h>

static bool wants_v(void *user, unsigned depth, const char *name, size_t size, size_t at)
{
    (void) user;
    (void) at;
    return depth == 2 || (size == 1 && *name == 'v');
}

/* Copies {"v":…} in pieces of `piece` bytes. Gives  the value as it was written, NULL: refused. */
static const char *copy_of(struct json_copy *copy, const char *given, size_t piece)
{
    require(sodium_init() >= 0, "sodium");
    json_copy_init(copy, wants_v, NULL);
    size_t size = strlen(given);
    json_copy_take(copy, "{\"v\":", 5);
    for (size_t at = 0; at < size; at += piece)
        json_copy_take(copy, given + at, size - at < piece ? size - at : piece);
    json_copy_take(copy, "}", 1);
    return json_copy_is_whole(copy) ? bytes_text(&copy->text) : NULL;
}

static const struct {
    const char *given, *written; /* NULL: refused */
} value_facts[] = {
    { "1", "1" },
    { "-0.5e+10", "-0.5e+10" },
    { "true", "true" },
    { "null", "null" },
    { "01", NULL },
    { "1.", NULL },
    { ".5", NULL },
    { "+1", NULL },
    { "1e", NULL },
    { "-", NULL },
    { "nul", NULL },
    { "NaN", NULL },
    { "-Infinity", NULL },
    { "'a'", NULL },
    { "", NULL },
    { "[1,]", NULL },
    { "[,1]", NULL },
    { "[1 2]", NULL },
    { "[1}", NULL },
    { "{\"a\":1]", NULL },
    { "{\"a\":1,}", NULL },
    { "{\"a\" 1}", NULL },
    { "{a:1}", NULL },
    { "{1:1}", NULL },
    { "[ ]", "[]" },
    { "{ }", "{}" },
    { "[ [ ] , { } ]", "[[],{}]" },
    { "{\"a\":{\"a\":1,\"b\":[{\"a\":2},{\"a\":3}]}}",
      "{\"a\":{\"a\":1,\"b\":[{\"a\":2},{\"a\":3}]}}" },
    /* A duplicate member, also with another spelling of its name. */
    { "{\"a\":1,\"a\":[{\"c\":[2]}],\"b\":3}", "{\"a\":1,\"b\":3}" },
    { "{\"a\":1,\"\\u0061\":2}", "{\"a\":1}" },
    { "{\"\\/\":1,\"/\":2}", "{\"/\":1}" },
    { "\"\\b\\f\\n\\r\\t\\\"\\\\\\/\"", "\"\\b\\f\\n\\r\\t\\\"\\\\/\"" },
    { "\"\\u0008\\u0022\\u005C\\u0041\\u0000\\u001f\"", "\"\\b\\\"\\\\A\\u0000\\u001f\"" },
    { "\"\\u00e9\\u20AC\\ud83d\\ude00\"", "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"" },
    { "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"", "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"" },
    /* A single surrogate is not a character. */
    { "\"\\ud83d\"", "\"\xEF\xBF\xBD\"" },
    { "\"\\ud83dx\\ude00\"", "\"\xEF\xBF\xBDx\xEF\xBF\xBD\"" },
    { "\"\\ud83d\\n\\ud83d\\ud83d\\ude00\"", "\"\xEF\xBF\xBD\\n\xEF\xBF\xBD\xF0\x9F\x98\x80\"" },
    { "{\"a\\u0000b\":1}", NULL },
    { "\"\\x\"", NULL },
    { "\"\\u12g4\"", NULL },
    { "\"a\nb\"", NULL },
    { "\"\xC0\x80\"", NULL },     /* an overlong form */
    { "\"\xED\xA0\x80\"", NULL }, /* a surrogate */
    { "\"\xF4\x90\x80\x80\"", NULL },
    { "\"\xC3\"", NULL }, /* a character that is cut */
    { "\"\x80\"", NULL },
};

TEST(values_are_written_anew)
{
    for_each(fact, value_facts)
        for (size_t piece = 1; piece < 40; piece++) {
            struct json_copy copy;
            const char *written = copy_of(&copy, fact->given, piece);
            expect(fact->written ? written && strcmp(written, fact->written) == 0 : !written,
                   "%s in pieces of %zu: %s", fact->given, piece, written ? written : "refused");
            json_copy_done(&copy);
        }
}

/* "[[[…]]]", and the same amount of values next to each other. */
static bool is_taken(unsigned depth, unsigned values, const char *value)
{
    struct json_copy copy;
    auto_bytes text = { 0 };
    for (unsigned i = 0; i < depth; i++)
        bytes_add_text(&text, "[");
    for (unsigned i = 0; i < values; i++) {
        bytes_add_text(&text, i > 0 ? "," : "");
        bytes_add_text(&text, value);
    }
    for (unsigned i = 0; i < depth; i++)
        bytes_add_text(&text, "]");
    bool is_whole = copy_of(&copy, bytes_text(&text), 1000) != NULL;
    json_copy_done(&copy);
    return is_whole;
}

TEST(depth_and_number_of_values_are_bounded)
{
    char digits[JSON_COPY_TOKEN_MAX + 2];
    memset(digits, '1', sizeof digits);
    expect(is_taken(JSON_COPY_DEPTH_MAX - 1, 1, "1"), "as deep as it may be");
    expect(!is_taken(JSON_COPY_DEPTH_MAX, 1, "1"), "one deeper");
    expect(is_taken(1, JSON_COPY_VALUES_MAX - 2, "1"), "as many as may be");
    expect(!is_taken(1, JSON_COPY_VALUES_MAX, "1"), "more");
    digits[JSON_COPY_TOKEN_MAX] = '\0';
    expect(is_taken(1, 1, digits), "a long number");
    digits[JSON_COPY_TOKEN_MAX] = '1';
    digits[JSON_COPY_TOKEN_MAX + 1] = '\0';
    expect(!is_taken(1, 1, digits), "a longer one");
}

/* Members would be lost if the table took different names for the same. */
TEST(all_of_many_names_are_kept)
{
    struct json_copy copy;
    auto_bytes text = { 0 };
    unsigned count = 0;
    bytes_add_text(&text, "{");
    for (unsigned i = 0; i < 40000; i++)
        bytes_print(&text, "%s\"%u\":0", i > 0 ? "," : "", i);
    bytes_add_text(&text, "}");
    const char *written = copy_of(&copy, bytes_text(&text), 4096);
    for (const char *at = written; at && *at; at++)
        count += *at == ':';
    expect(count == 40000, "%u names", count);
    json_copy_done(&copy);
}

TESTS(CASE(values_are_written_anew), CASE(depth_and_number_of_values_are_bounded),
      CASE(all_of_many_names_are_kept))
