/* text_test.c - which bytes are text, and where the first other byte is. */
#include "base/text.h"

#include "base/table.h"
#include "base/test.h"

#include <string.h>

TEST(the_first_byte_that_is_no_text_is_found)
{
    static const struct {
        const char *text;
        size_t unclean; /* offset of the first bad byte; the length if there is none */
    } facts[] = {
        { "", 0 },
        { "plain\ttext\n", 11 },
        { "gr\xc3\xbc\xc3\x9f", 6 },
        { "\xe2\x82\xac", 3 },     /* euro */
        { "\xf0\x9f\xa7\xa4", 4 }, /* gloves */
        { "\xf4\x8f\xbf\xbf", 4 }, /* the last character */
        { "a\x1b[2J", 1 },         /* would clear a screen */
        { "a\r\n", 1 },            /* only '\n' ends a line */
        { "a\x7f", 1 },
        { "a\xc2\x9b", 1 }, /* CSI, of the second set of control characters */
        { "a\x80", 1 },     /* begins in the middle */
        { "\xc0\x80", 0 },  /* NUL, overlong */
        { "\xc1\xbf", 0 },
        { "\xe0\x9f\xbf", 0 },     /* overlong */
        { "\xed\xa0\x80", 0 },     /* surrogate */
        { "\xf0\x8f\xbf\xbf", 0 }, /* overlong */
        { "\xf4\x90\x80\x80", 0 }, /* past the last character */
        { "\xf5\x80\x80\x80", 0 },
        { "\xff", 0 },
        { "ab\xc3", 2 }, /* cut */
        { "ab\xe2\x82", 2 },
        { "ab\xe2\x82x", 2 },
        { "ab\xf0\x9f\xa7", 2 },
    };
    for_each(fact, facts) {
        size_t unclean = text_find_unclean(fact->text, strlen(fact->text));
        expect(unclean == fact->unclean, "fact %d gave %zu", (int) (fact - facts), unclean);
    }
    expect(text_find_unclean("a\0b", 3) == 1, "NUL is no text");
}

TEST(a_text_is_cut_between_characters)
{
    static const struct {
        const char *text;
        int max, head;
    } facts[] = {
        { "", 4, 0 },
        { "abcd", 4, 4 },
        { "abcde", 4, 4 },
        { "abc\xc3\xbc", 4, 3 },
        { "abc\xc3\xbc", 5, 5 },
        { "ab\xf0\x9f\xa7\xa4", 5, 2 },
        { "\xf0\x9f\xa7\xa4", 2, 0 },
        { "ab", 0, 0 },
        { "\x80\x80\x80\x80\x80\x80", 5, 2 }, /* no text in any case: the buffer ends */
    };
    for_each(fact, facts)
        expect(text_head(fact->text, fact->max) == fact->head, "fact %d gave %d",
               (int) (fact - facts), text_head(fact->text, fact->max));
}

TEST(the_first_byte_that_is_not_utf8_is_found)
{
    static const struct {
        const char *text;
        size_t size, bad;
    } facts[] = {
        { "", 0, 0 },
        { "plain", 5, 5 },
        { "gr\xc3\xbc\xc3\x9f", 6, 6 },
        { "\xf0\x9f\x98\x80", 4, 4 },
        { "a\0b", 3, 1 }, /* NUL would end the text too early */
        { "a\xff", 2, 1 },
        { "a\xc3", 2, 1 },            /* cut short */
        { "\xc0\xaf", 2, 0 },         /* overlong '/' */
        { "\xe0\x80\xaf", 3, 0 },     /* overlong */
        { "\xf0\x80\x80\xaf", 4, 0 }, /* overlong */
        { "\xed\xa0\x80", 3, 0 },     /* a surrogate */
        { "\xf4\x90\x80\x80", 4, 0 }, /* above U+10FFFF */
        { "\xf5\x80\x80\x80", 4, 0 },
        { "ok\x80", 3, 2 },
    };
    for_each(fact, facts) {
        size_t bad = text_find_undecodable(fact->text, fact->size);
        expect(bad == fact->bad, "'%s' gave %zu", fact->text, bad);
    }
}

TEST(a_list_ends_where_the_room_ends)
{
    static const char *const words[] = { "one", "two", "three", "4" };
    static const struct {
        size_t room;
        const char *list;
    } facts[] = {
        { 24, "one, two, three, 4" },
        { 23, "one, two, three, …" },
        { 21, "one, two, three, …" },
        { 20, "one, two, …" },
        { 14, "one, two, …" },
        { 13, "one, …" },
        { 9, "one, …" },
        { 8, "…" },
        { 6, "…" },
    };
    for_each(fact, facts) {
        char list[32] = "";
        memset(list + fact->room, '#', sizeof list - fact->room);
        for_each(word, words)
            if (!text_list(list, fact->room, *word))
                break;
        expect(strcmp(list, fact->list) == 0, "room %zu: '%s'", fact->room, list);
        expect(list[fact->room] == '#', "room %zu: written beyond", fact->room);
    }
}

TESTS(CASE(a_list_ends_where_the_room_ends), CASE(the_first_byte_that_is_not_utf8_is_found),
      CASE(the_first_byte_that_is_no_text_is_found), CASE(a_text_is_cut_between_characters))
