/* screen_filter_test.c - what reaches the terminal, given at once or byte by byte: the bytes around
 * a dropped part never form a sequence again. */
#include "base/table.h"
#include "base/test.h"
#include "cli/tty/screen_filter.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* A text that may contain NUL. */
#define TEXT(literal) (literal), sizeof(literal) - 1

static size_t drawn(const char *text, size_t size, size_t piece, char *ret_out, size_t room)
{
    int ends[2];
    require(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0, "pipe");
    struct screen screen = { .out = ends[1] };
    for (size_t at = 0; at < size; at += piece)
        screen_draw(&screen, text + at, size - at < piece ? size - at : piece);
    ssize_t got = read(ends[0], ret_out, room);
    (void) close(ends[0]);
    (void) close(ends[1]);
    return got > 0 ? (size_t) got : 0;
}

TEST(sequences_draw_and_do_nothing_else)
{
    static const struct {
        const char *text;
        size_t size;
        const char *passes;
    } facts[] = {
        { TEXT("a\x1b[1;31mb\x1b[0m\x1b[2J\x1b[?25l\x1b(B"),
          "a\x1b[1;31mb\x1b[0m\x1b[2J\x1b[?25l\x1b(B" },
        { TEXT("\x1b[?1049h\x1b[!p\x1b[>4;2m\x1b[s\x1b[u"),
          "\x1b[?1049h\x1b[!p\x1b[>4;2m\x1b[s\x1b[u" },
        { TEXT("a\x1b]52;c;aWQ=\x07z"), "az" },
        { TEXT("a\x1b]0;t\x1b\\z"), "az" },
        { TEXT("a\x1bPq\x1b\\z"), "az" },
        { TEXT("a\x1b[6nz\x1b[c\x1b[?u\x1b[?1;1S\x1b[?4m\x1bZ\x05"), "az" },
        { TEXT("a\x1b[?25$p\x1b[1$w\x1b[&u\x1b[0 qz"), "az" },
        { TEXT("a\x1b\x1b]52;c;aWQ=\x07z"), "az" },   /* the second ESC begins anew */
        { TEXT("a\x1b[1\x1b]52;c;aWQ=\x07z"), "az" }, /* also inside ESC [ */
        { TEXT("a\x1b[1\x1b[6nz"), "az" },
        { TEXT("a\x1b(\x1b]0;t\x07z"), "az" },
        { TEXT("a\x1b[\x05mz"), "amz" },
        { TEXT("a\x1b%@z"), "az" }, /* would end UTF-8 */
        { TEXT("a\xc2\x9d"
               "0;t"),
          "a0;t" },
        { TEXT("a\xc2\x1bZ\x9dz"), "a\x9dz" }, /* no C2 9D comes together */
        { TEXT("a\xc2\x05\x9dz"), "a\x9dz" },
        { TEXT("a\x1b[\xc2\x9dlz"), "a\x9dlz" },
        { TEXT("a\x1b(\xc2\x9dz"), "a\x9dz" },
        { TEXT("\xc2\xa9 \xc3\xa4 \xe2\x82\xac"), "\xc2\xa9 \xc3\xa4 \xe2\x82\xac" },
    };
    for_each(fact, facts)
        for (size_t piece = 1; piece <= fact->size; piece++) {
            char out[256];
            size_t got = drawn(fact->text, fact->size, piece, out, sizeof out);
            expect(got == strlen(fact->passes) && memcmp(out, fact->passes, got) == 0,
                   "fact %zu in pieces of %zu gave %zu bytes: %.*s", (size_t) (fact - facts), piece,
                   got, (int) got, out);
        }
}

TESTS(CASE(sequences_draw_and_do_nothing_else))
