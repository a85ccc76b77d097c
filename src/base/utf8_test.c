/* utf8_test.c - complete, invalid and incomplete characters. */
#include "base/test.h"

#include "base/table.h"
#include "base/utf8.h"

#include <string.h>

TEST(characters_have_their_length)
{
    static const struct {
        const char *text;
        size_t size;
        int length;
    } facts[] = {
        { "a", 1, 1 },
        { "\x7f", 1, 1 },
        { "\xc3\xa9", 2, 2 },
        { "\xe2\x82\xac", 3, 3 },
        { "\xf0\x9f\x98\x80", 4, 4 },
        { "\xf4\x8f\xbf\xbf", 4, 4 },            /* U+10FFFF */
        { "\xf4\x90\x80\x80", 4, UTF8_INVALID }, /* beyond */
        { "\xed\xa0\x80", 3, UTF8_INVALID },     /* surrogate */
        { "\xc0\x80", 2, UTF8_INVALID },         /* overlong NUL */
        { "\xe0\x80\x80", 3, UTF8_INVALID },     /* overlong */
        { "\xf0\x80\x80\x80", 4, UTF8_INVALID }, /* overlong */
        { "\x80", 1, UTF8_INVALID },             /* continuation alone */
        { "\xff", 1, UTF8_INVALID },
        { "\xc3", 1, UTF8_CUT },
        { "\xe2\x82", 2, UTF8_CUT },
        { "\xf0\x9f\x98", 3, UTF8_CUT },
        { "\xe2\x28\xa1", 3, UTF8_INVALID },
        { "", 0, UTF8_CUT },
    };
    for_each(fact, facts)
        expect(utf8_character((const unsigned char *) fact->text, fact->size) == fact->length,
               "first byte %02x of %zu", (unsigned char) fact->text[0], fact->size);
}

TEST(what_shows_as_nothing_is_hidden)
{
    static const uint32_t hidden[] = { 0x00,   0x1b,   0x7f,   0x9b,   0xad,   0x34f,
                                       0x115f, 0x180b, 0x200b, 0x202e, 0x2066, 0x2800,
                                       0x3164, 0xfeff, 0xffa0, 0xe0041 };
    static const uint32_t shown[] = { '\t', '\n', ' ', '~', 0xa1, 0xe9, 0x3042, 0x1f600 };
    for_each(point, hidden)
        expect(utf8_is_hidden(*point), "U+%04X is shown as it is", *point);
    for_each(point, shown)
        expect(!utf8_is_hidden(*point), "U+%04X is written as a number", *point);
}

TEST(a_text_is_valid_up_to_its_first_mistake)
{
    static const struct {
        const char *text;
        size_t valid;
    } facts[] = {
        { "plain text that is longer than eight", 36 },
        { "12345678\xff", 8 },
        { "1234567\xc3\xa9 8", 11 },
        { "\xc3", 0 },
    };
    for_each(fact, facts)
        expect(utf8_valid_size(fact->text, strlen(fact->text)) == fact->valid, "'%s'", fact->text);
}

TEST(what_is_cut_at_the_end_is_known)
{
    static const struct {
        const char *text;
        size_t cut;
    } facts[] = {
        { "abc", 0 },        { "ab\xc3", 1 }, { "ab\xe2\x82", 2 },       { "ab\xf0\x9f\x98", 3 },
        { "ab\xc3\xa9", 0 }, { "ab\x80", 0 }, { "\xf0\x9f\x98\x80", 0 }, { "", 0 },
    };
    for_each(fact, facts)
        expect(utf8_cut_at_end(fact->text, strlen(fact->text)) == fact->cut, "'%s'", fact->text);
}

TESTS(CASE(characters_have_their_length), CASE(what_shows_as_nothing_is_hidden),
      CASE(a_text_is_valid_up_to_its_first_mistake), CASE(what_is_cut_at_the_end_is_known))
