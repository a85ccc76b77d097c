/* reader_test.c - long texts bypass json-c: for any text, cut anywhere, the value is the one that
 * json-c alone reads, and what json-c refuses is refused. */
#include "json/reader.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/table.h"
#include "base/test.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 400 };

static const size_t FILL = 3000;

/* Parts of texts: plain bytes, escapes, single surrogates, characters of two to four bytes. */
static const char *const parts[] = {
    "a",
    "\\n",
    "\\\"",
    "\\\\",
    "\\/",
    "\\t",
    "\\b\\f\\r",
    "\\u0041",
    "\\u00e9",
    "\\u20AC",
    "\\ud83d\\ude00",
    "\\ud83d",
    "\\ude00",
    "\\u0000",
    "é",
    "€",
    "😀",
    "'",
    "N",
    "I:,[{",
    "\x7f",
    "u0000",
};

static void fill(struct bytes *out, size_t size, unsigned *seed)
{
    for (size_t end = out->size + size; out->size < end;) {
        unsigned kind = (unsigned) rand_r(seed) % 64;
        if (kind < COUNT_OF(parts))
            bytes_add_text(out, parts[kind]);
        else
            bytes_add(out, "plain text that goes on for a while ", kind % 36 + 1);
    }
}

/* The value as json-c writes it; NULL if it is refused. */
static char *read_in_pieces(const struct bytes *text, size_t piece, error *err)
{
    struct json_reader reader;
    struct json_object *value;
    if (json_reader_open(&reader, err) < 0)
        return NULL;
    for (size_t at = 0; at < text->size; at += piece)
        json_reader_take(&reader, text->data + at,
                         text->size - at < piece ? text->size - at : piece);
    int result = json_reader_end(&reader, &value, err);
    json_reader_close(&reader);
    if (result < 0)
        return NULL;
    char *copy = strdup(json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN));
    (void) json_object_put(value);
    return copy;
}

static char *read_by_json_c(const struct bytes *text)
{
    struct json_tokener *tokener = json_tokener_new_ex(64);
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
    struct json_object *value = json_tokener_parse_ex(tokener, text->data, (int) text->size);
    char *copy =
        value ? strdup(json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN)) : NULL;
    (void) json_object_put(value);
    json_tokener_free(tokener);
    return copy;
}

TEST(long_texts_are_what_json_c_reads)
{
    unsigned seed = 20;
    for (unsigned round = 0; round < ROUNDS; round++) {
        auto_bytes text = { 0 };
        error err = { 0 };
        bytes_add_text(&text, "{\"a\": [\"");
        fill(&text, (size_t) rand_r(&seed) % FILL, &seed);
        bytes_add_text(&text, "\", 1], \"name");
        for (size_t i = (size_t) rand_r(&seed) % FILL; i > 0; i--)
            bytes_add(&text, "x", 1);
        bytes_add_text(&text, "\" : \"");
        fill(&text, (size_t) rand_r(&seed) % FILL, &seed);
        bytes_add_text(&text, "\"}");
        size_t piece = round % 3 == 0 ? text.size : (size_t) rand_r(&seed) % (2 * FILL) + 1;
        char *wanted = read_by_json_c(&text);
        char *got = read_in_pieces(&text, piece, &err);
        bool is_same = wanted && got && strcmp(got, wanted) == 0;
        expect(is_same, "round %u in pieces of %zu: %s", round, piece, got ? got : err.text);
        free(wanted);
        free(got);
    }
}

/* In the middle of a long text. */
TEST(mistakes_in_long_texts_are_refused)
{
    static const struct {
        const char *wrong, *why;
    } facts[] = {
        { "\\x", "is not JSON" },    { "\\u12g4", "is not JSON" }, { "\xff", "is not UTF-8" },
        { "\xed\xa0\x80", "UTF-8" }, { "\" \"", "is not JSON" },   { "\"}}", "at byte 3008" },
    };
    for_each(fact, facts) {
        for (size_t piece = 1; piece < 3 * FILL; piece = piece * 3 + 1) {
            auto_bytes text = { 0 };
            error err = { 0 };
            bytes_add_text(&text, "{\"a\":\"");
            for (size_t i = 0; i < 2 * FILL; i++) {
                if (i == FILL)
                    bytes_add_text(&text, fact->wrong);
                bytes_add(&text, "y", 1);
            }
            bytes_add_text(&text, "\"}");
            auto_text got = read_in_pieces(&text, piece, &err);
            expect(!got && strstr(err.text, fact->why), "%s in pieces of %zu: %s", fact->wrong,
                   piece, got ? "taken" : err.text);
        }
    }
}

/* The position of a mistake after a long text is that in the body. */
TEST(mistakes_are_reported_with_line_and_column)
{
    auto_bytes text = { 0 };
    error err = { 0 };
    bytes_add_text(&text, "[\"");
    for (size_t i = 0; i < FILL; i++)
        bytes_add(&text, "y", 1);
    bytes_add_text(&text, "\",]");
    for (size_t piece = 1; piece < 2 * FILL; piece += 499) {
        auto_text got = read_in_pieces(&text, piece, &err);
        expect(!got && strstr(err.text, "at byte 3004"), "in pieces of %zu: %s", piece, err.text);
    }
}

TEST(a_text_without_an_end_is_refused)
{
    auto_bytes text = { 0 };
    error err = { 0 };
    bytes_add_text(&text, "\"");
    for (size_t i = 0; i < FILL; i++)
        bytes_add(&text, "\\n", 2);
    auto_text got = read_in_pieces(&text, text.size, &err);
    expect(!got && strstr(err.text, "inside its JSON value"), "%s", err.text);
}

TESTS(CASE(long_texts_are_what_json_c_reads), CASE(mistakes_in_long_texts_are_refused),
      CASE(mistakes_are_reported_with_line_and_column), CASE(a_text_without_an_end_is_refused))
