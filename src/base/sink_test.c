/* sink_test.c - a sink that counts gives the size that a sink that writes sends. */
#include "base/sink.h"
#include "base/table.h"
#include "base/test.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A sink that counts must give the number of bytes that a socket gets. */
static void check_written(void (*write_all)(struct sink *), const char *expected, size_t size)
{
    int pair[2];
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "no socketpair");
    struct sink sink;
    error err;
    sink_init(&sink, -1);
    write_all(&sink);
    expect(sink.total == size, "counted %llu, not %zu", (unsigned long long) sink.total, size);
    sink_init(&sink, pair[0]);
    write_all(&sink);
    expect(sink_flush(&sink, &err) == 0, "not written");
    (void) close(pair[0]);
    char came[256] = "";
    ssize_t got = recv(pair[1], came, sizeof came, MSG_WAITALL);
    expect(got == (ssize_t) size && memcmp(came, expected, size) == 0, "'%.*s' came", (int) got,
           came);
    (void) close(pair[1]);
}

static void write_base64(struct sink *sink)
{
    sink_base64(sink, "", 0);
    sink_base64(sink, "f", 1);
    sink_base64(sink, "fo", 2);
    sink_base64(sink, "foo", 3);
    sink_base64(sink, "\0\xff", 2);
}

TEST(a_sink_writes_what_it_counted)
{
    static const char encoded[] = "\"\"\"Zg==\"\"Zm8=\"\"Zm9v\"\"AP8=\"";
    check_written(write_base64, encoded, strlen(encoded));
}

TEST(a_reader_that_is_gone_is_a_failure)
{
    int pair[2];
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "no socketpair");
    (void) close(pair[1]);
    struct sink sink;
    error err;
    sink_init(&sink, pair[0]);
    sink_text(&sink, "nobody reads this");
    expect(sink_flush(&sink, &err) < 0 && err.code == ERR_SYSTEM, "it was sent");
    (void) close(pair[0]);
}

TESTS(CASE(a_sink_writes_what_it_counted), CASE(a_reader_that_is_gone_is_a_failure))
