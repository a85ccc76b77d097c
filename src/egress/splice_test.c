/* splice_test.c - all bytes and the end of the stream arrive. */
#include "base/table.h"
#include "base/test.h"
#include "egress/splice.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HERE, THERE };

struct line {
    int sender[2], receiver[2];
    struct splice flow;
};

static void lay(struct line *line)
{
    *line = (struct line){ 0 };
    expect(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, line->sender) == 0 &&
               socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, line->receiver) == 0 &&
               splice_open(&line->flow, line->sender[THERE], line->receiver[HERE]) == 0,
           "no line");
}

static void take_up(struct line *line)
{
    splice_close(&line->flow);
    for (unsigned i = 0; i < 2; i++) {
        (void) close(line->sender[i]);
        (void) close(line->receiver[i]);
    }
}

/* Calls the pump as the loop does, while a descriptor that it waits for is ready. */
static void pump(struct line *line, uint64_t max)
{
    uint64_t taken;
    for (unsigned i = 0; i < 1000 && (i == 0 || splice_wants_write(&line->flow)); i++)
        splice_pump(&line->flow, max, &taken);
}

static size_t read_all(int from, char *bytes, size_t size)
{
    size_t got = 0;
    for (ssize_t part; got < size && (part = read(from, bytes + got, size - got)) > 0;)
        got += (size_t) part;
    return got;
}

/* The last turn of a call may be the one that reads the end: 8 small pieces a turn. */
TEST(the_end_is_passed_on_whenever_it_comes)
{
    for (unsigned pieces = 0; pieces < 160; pieces++) {
        struct line line;
        char bytes[256];
        lay(&line);
        for (unsigned i = 0; i < pieces; i++)
            expect(write(line.sender[HERE], "x", 1) == 1, "piece %u", i);
        (void) shutdown(line.sender[HERE], SHUT_WR);
        pump(&line, UINT64_MAX);
        expect(line.flow.is_done, "%u pieces: not done", pieces);
        size_t got = read_all(line.receiver[THERE], bytes, sizeof bytes);
        expect(got == pieces && read(line.receiver[THERE], bytes, 1) == 0, "%u pieces: %zu came",
               pieces, got);
        take_up(&line);
    }
}

TEST(a_body_is_as_long_as_it_was_to_be)
{
    static const struct {
        enum splice_body body;
        uint64_t left;
        const char *sent;
        const char *passed;
        bool is_done, fails;
    } facts[] = {
        { SPLICE_ALL, 0, "abc", "abc", true, false },
        { SPLICE_COUNTED, 3, "abcdef", "abc", true, false },
        { SPLICE_COUNTED, 0, "abc", "", true, false },
        { SPLICE_COUNTED, 9, "abc", "abc", false, true }, /* it ends early */
        { SPLICE_CHUNKED, 0, "3\r\nabc\r\n0\r\n\r\nmore", "3\r\nabc\r\n0\r\n\r\n", true, false },
        { SPLICE_CHUNKED, 0, "3;x=y\r\nabc\r\n0\r\nT: x\r\n\r\n", "3\r\nabc\r\n0\r\n\r\n", true,
          false },
        { SPLICE_CHUNKED, 0, "zz\r\n", "", false, true },
        { SPLICE_CHUNKED, 0, "3\r\nab", "2\r\nab\r\n", false, true },
    };
    for_each(fact, facts) {
        struct line line;
        char bytes[256] = "";
        lay(&line);
        line.flow.body = fact->body;
        line.flow.left = fact->left;
        expect(write(line.sender[HERE], fact->sent, strlen(fact->sent)) ==
                   (ssize_t) strlen(fact->sent),
               "write");
        (void) shutdown(line.sender[HERE], SHUT_WR);
        pump(&line, UINT64_MAX);
        size_t got = read_all(line.receiver[THERE], bytes, sizeof bytes - 1);
        bytes[got] = '\0';
        expect(strcmp(bytes, fact->passed) == 0, "'%s' gave '%s'", fact->sent, bytes);
        expect(line.flow.is_done == fact->is_done && line.flow.fails == fact->fails,
               "'%s': done %d, fails %d", fact->sent, line.flow.is_done, line.flow.fails);
        take_up(&line);
    }
}

TEST(no_more_is_taken_than_may_be)
{
    struct line line;
    char bytes[16];
    uint64_t taken;
    lay(&line);
    expect(write(line.sender[HERE], "0123456789", 10) == 10, "write");
    splice_pump(&line.flow, 4, &taken);
    expect(taken == 4 && read_all(line.receiver[THERE], bytes, sizeof bytes) == 4, "%d",
           (int) taken);
    take_up(&line);
}

TEST(a_receiver_that_left_ends_it)
{
    struct line line;
    (void) signal(SIGPIPE, SIG_IGN); /* as main() does */
    lay(&line);
    expect(write(line.sender[HERE], "x", 1) == 1, "write");
    (void) shutdown(line.receiver[HERE], SHUT_WR);
    pump(&line, UINT64_MAX);
    expect(line.flow.fails && !splice_wants_read(&line.flow) && !splice_wants_write(&line.flow),
           "it goes on");
    take_up(&line);
}

TEST(what_was_read_before_goes_first)
{
    struct line line;
    char bytes[64];
    lay(&line);
    line.flow.body = SPLICE_CHUNKED;
    expect(splice_put(&line.flow, "head ", 5) == 0 && splice_put(&line.flow, "", 0) == 0 &&
               splice_put_body(&line.flow, "2\r\nab\r\n", 7) == 0,
           "put");
    expect(splice_put_body(&line.flow, "zz\r\n", 4) < 0, "bad chunks pass");
    line.flow.fails = false;
    pump(&line, UINT64_MAX);
    size_t got = read_all(line.receiver[THERE], bytes, sizeof bytes);
    expect(got == 12 && memcmp(bytes, "head 2\r\nab\r\n", 12) == 0, "%zu bytes", got);
    take_up(&line);
}

TEST(much_traffic_widens_the_pipe)
{
    static char block[32768];
    struct line line;
    uint64_t taken;
    lay(&line);
    int before = fcntl(line.flow.pipe[0], F_GETPIPE_SZ);
    for (unsigned i = 0; i < 64; i++) {
        expect(write(line.sender[HERE], block, sizeof block) == sizeof block, "write");
        splice_pump(&line.flow, UINT64_MAX, &taken);
        expect(taken == sizeof block &&
                   read_all(line.receiver[THERE], block, sizeof block) == taken,
               "%u came", (unsigned) taken);
    }
    int after = fcntl(line.flow.pipe[0], F_GETPIPE_SZ);
    expect(line.flow.is_wide && after > before, "%d after %d", after, before);
    take_up(&line);
}

TESTS(CASE(the_end_is_passed_on_whenever_it_comes), CASE(a_body_is_as_long_as_it_was_to_be),
      CASE(no_more_is_taken_than_may_be), CASE(a_receiver_that_left_ends_it),
      CASE(what_was_read_before_goes_first), CASE(much_traffic_widens_the_pipe))
