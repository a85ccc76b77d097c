/* client_test.c - where the body of an answer ends, and which answers are refused. */
#include "base/table.h"
#include "base/test.h"
#include "http1/client.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Gives `answer` to the reader in pieces of `piece` bytes, or all at once with 0, and then closes
 * the connection. */
static int read_answer(const char *answer, size_t piece, char *body, size_t *ret_size, error *err)
{
    int pair[2];
    require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0, "no socketpair");
    size_t length = strlen(answer);
    for (size_t at = 0; at < length; at += piece ? piece : length) {
        size_t here = piece && piece < length - at ? piece : length - at;
        require(send(pair[1], answer + at, here, 0) == (ssize_t) here, "not sent");
    }
    (void) close(pair[1]);
    static struct http http; /* large */
    http_init(&http, pair[0], -1);
    http.until = deadline_in(2000);
    int outcome = http_receive(&http, err);
    *ret_size = 0;
    while (outcome == 0) {
        size_t got = 0;
        outcome = http_read(&http, body + *ret_size, 64, &got, err);
        if (got == 0)
            break;
        *ret_size += got;
    }
    body[*ret_size] = '\0';
    http_done(&http);
    return outcome;
}

TEST(a_body_ends_where_the_head_says)
{
    static const struct {
        const char *answer;
        int outcome;
        const char *body;
    } facts[] = {
        { "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 0, "abc" },
        { "HTTP/1.1 200 OK\r\ncontent-length:3\r\n\r\nabcdef", 0, "abc" },
        { "HTTP/1.1 200 OK\nContent-Length: 1\n\na", 0, "a" },
        { "HTTP/1.1 204 No\r\n\r\n", 0, "" },
        { "HTTP/1.1 200 OK\r\n\r\nuntil the end", 0, "until the end" },
        { "HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", 0, "x" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: "
          "chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
          0, "abcde" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nTrailer: x\r\n\r\n",
          0, "a" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", HTTP_CLOSED, "abc" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab", HTTP_CLOSED, "ab" },
        { "HTTP/1.1 200 OK\r\nContent-Le", HTTP_CLOSED, "" },
        { "", HTTP_CLOSED, "" },
        { "HTTP/1.1 2x0 OK\r\n\r\n", -1, "" },
        { "HTTP/2 200\r\n\r\n", -1, "" },
        { "SSH-2.0-OpenSSH\r\n", -1, "" },
        { "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", -1, "" },
        { "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", -1, "" },
        { "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\na", -1, "" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n\r\na", -1, "" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\na", -1, "" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: "
          "chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
          -1, "" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", -1, "" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", -1, "" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", -1, "" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n", -1, "a" },
    };
    for_each(fact, facts)
        for (size_t piece = 0; piece < 8; piece++) {
            char body[256];
            size_t size;
            error err = { 0 };
            int outcome = read_answer(fact->answer, piece, body, &size, &err);
            expect(outcome == fact->outcome && strcmp(body, fact->body) == 0,
                   "'%s' in pieces of %zu gave %d, '%s': %s", fact->answer, piece, outcome, body,
                   err.text);
        }
}

TEST(a_header_without_end_is_refused)
{
    static char answer[HTTP_BUFFER + 4096] = "HTTP/1.1 200 OK\r\nX: ";
    memset(answer + strlen(answer), 'y', sizeof answer - 1 - strlen(answer));
    char body[8];
    size_t size;
    error err = { 0 };
    expect(read_answer(answer, 16384, body, &size, &err) < 0 && err.code == ERR_PROTOCOL, "%s",
           err.text);
}

/* Collects events as "name=data;". */
static int collect(void *context, const char *name, const char *data, error *err)
{
    (void) err;
    char *text = context;
    size_t used = strlen(text);
    (void) snprintf(text + used, 256 - used, "%s=%s;", name, data);
    return 0;
}

TEST(events_are_put_together)
{
    static const struct {
        const char *stream, *events;
    } facts[] = {
        { "event: a\ndata: 1\n\n", "a=1;" },
        { "event:a\r\ndata:1\r\n\r\n", "a=1;" },
        { "data: 1\n\ndata: 2\n\n", "=1;=2;" },
        { "event: a\ndata: 1\ndata: 2\n\n", "a=1\n2;" },
        { ": a comment\n\nevent: a\nid: 7\ndata:  x\n\n", "a= x;" },
        { "event: a\n\ndata: 1\n\n", "a=1;" },
        { "event: a\ndata: never ended", "" },
        { "event: this name is far longer than any that we know\ndata: 1\n\n",
          "this name is far longer than an=1;" },
    };
    for_each(fact, facts)
        for (size_t piece = 1; piece < 5; piece++) {
            char events[256] = "";
            error err = { 0 };
            struct event_reader reader = { .came = collect, .context = events };
            for (size_t at = 0; at < strlen(fact->stream); at += piece) {
                size_t left = strlen(fact->stream) - at;
                expect(event_reader_feed(&reader, fact->stream + at, left < piece ? left : piece,
                                         &err) == 0,
                       "%s", err.text);
            }
            event_reader_done(&reader);
            expect(strcmp(events, fact->events) == 0, "'%s' gave '%s'", fact->stream, events);
        }
}

TESTS(CASE(a_body_ends_where_the_head_says), CASE(a_header_without_end_is_refused),
      CASE(events_are_put_together))
