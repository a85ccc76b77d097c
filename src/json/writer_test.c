/* writer_test.c - commas, escapes, and bytes that are not UTF-8. */
#include "base/test.h"

#include "base/table.h"
#include "json/quote.h"
#include "json/writer.h"

#include <string.h>

TEST(commas_stand_where_they_must)
{
    auto_bytes out = { 0 };
    json_open(&out, '{');
    json_string_field(&out, "a", "x,");
    json_open_field(&out, "b", '[');
    json_count(&out, 1);
    json_string(&out, "[");
    json_open(&out, '{');
    json_close(&out, '}');
    json_null(&out);
    json_flag(&out, true);
    json_close(&out, ']');
    json_number_field(&out, "c", -1);
    json_null_field(&out, "d");
    json_close(&out, '}');
    expect(strcmp(bytes_text(&out),
                  "{\"a\":\"x,\",\"b\":[1,\"[\",{},null,true],\"c\":-1,\"d\":null}") == 0,
           "got %s", bytes_text(&out));
}

TEST(texts_are_escaped)
{
    static const struct {
        const char *text;
        size_t size;
        const char *json;
    } facts[] = {
        { "plain", 5, "\"plain\"" },
        { "\"\\\b\f\n\r\t", 7, "\"\\\"\\\\\\b\\f\\n\\r\\t\"" },
        { "a\0b", 3, "\"a\\u0000b\"" },
        { "\x1b[31m\x7f", 6, "\"\\u001b[31m\\u007f\"" },
        { "\xc3\xa9", 2, "\"\xc3\xa9\"" },
        { "\xff\xfe", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
        { "\xe2\x82", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
        { "", 0, "\"\"" },
    };
    for_each(fact, facts) {
        auto_bytes out = { 0 };
        json_text(&out, fact->text, fact->size);
        expect(strcmp(bytes_text(&out), fact->json) == 0, "got %s instead of %s", bytes_text(&out),
               fact->json);
    }
}

/* Eight bytes are tested together: a byte to escape is found at each position among them. */
TEST(escapes_are_found_wherever_they_stand)
{
    static const struct {
        char byte;
        const char *json;
    } facts[] = { { '"', "\\\"" },           { '\\', "\\\\" }, { '\x1f', "\\u001f" },
                  { '\x7f', "\\u007f" },     { ' ', " " },     { '~', "~" },
                  { '\x80', "\xef\xbf\xbd" } };
    for_each(fact, facts)
        for (size_t place = 0; place < 20; place++) {
            char text[] = "aZ09aZ09!#[]^_`{|}~a", wanted[64];
            text[place] = fact->byte;
            (void) snprintf(wanted, sizeof wanted, "\"%.*s%s%s\"", (int) place, text, fact->json,
                            text + place + 1);
            auto_bytes out = { 0 };
            json_text(&out, text, strlen(text));
            expect(strcmp(bytes_text(&out), wanted) == 0, "got %s instead of %s", bytes_text(&out),
                   wanted);
        }
}

TEST(base64_has_its_padding)
{
    static const struct {
        const char *bytes, *json;
    } facts[] = {
        { "", "\"\"" },        { "f", "\"Zg==\"" },        { "fo", "\"Zm8=\"" },
        { "foo", "\"Zm9v\"" }, { "foob", "\"Zm9vYg==\"" }, { "\xff\xfe\xfd", "\"//79\"" }
    };
    for_each(fact, facts) {
        auto_bytes out = { 0 };
        json_base64(&out, fact->bytes, strlen(fact->bytes));
        expect(strcmp(bytes_text(&out), fact->json) == 0, "got %s", bytes_text(&out));
    }
}

/* A text that is quoted in pieces gives the same as the whole, wherever it is cut. */
TEST(pieces_are_quoted_as_the_whole)
{
    static const char *const texts[] = {
        "\xe2\x82\xac and \xc3\xa9\n\"x\"",
        "\xe2\xc3\xa9\xff\xe2\x82",
        "\xf0\x9f\x98\x80\xf0\x9f",
        "a\nb\nc\nd\x7f\x01 and a run of plain bytes that is long\n\n",
    };
    for_each(text, texts) {
        auto_bytes whole = { 0 };
        size_t size = strlen(*text);
        json_text(&whole, *text, size);
        for (size_t first = 0; first <= size; first++) {
            for (size_t second = first; second <= size; second++) {
                auto_bytes out = { 0 };
                struct json_quote quote;
                json_quote_begin(&quote, &out);
                json_quote_add(&quote, *text, first);
                json_quote_add(&quote, *text + first, second - first);
                json_quote_add(&quote, *text + second, size - second);
                json_quote_end(&quote);
                expect(strcmp(bytes_text(&out), bytes_text(&whole)) == 0, "%zu, %zu: %s", first,
                       second, bytes_text(&out));
            }
        }
    }
}

TESTS(CASE(pieces_are_quoted_as_the_whole), CASE(commas_stand_where_they_must),
      CASE(texts_are_escaped), CASE(escapes_are_found_wherever_they_stand),
      CASE(base64_has_its_padding))
