/* request_head_test.c - which heads of requests are read, what they mean, and how they are
 * forwarded. */
#include "http1/chunked.h"
#include "http1/request_head.h"

#include "base/table.h"
#include "base/test.h"

#include <string.h>

#define LINE        "GET / HTTP/1.1\r\n"
#define HOST        "Host: api.example.org\r\n"
#define END         "\r\n"
#define POST        "POST / HTTP/1.1\r\n" HOST
#define EIGHT(text) text text text text text text text text

static const struct {
    const char *head;
    enum http_verdict verdict;
    enum http_fault fault;
} heads[] = {
    { LINE HOST END, HTTP_WHOLE, HTTP_NO_FAULT },
    { LINE HOST, HTTP_MORE, HTTP_MALFORMED },
    { "", HTTP_MORE, HTTP_MALFORMED },
    { "GET / HTTP/1.0\r\n" HOST END, HTTP_WHOLE, HTTP_NO_FAULT },
    { "POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n" END, HTTP_BAD, HTTP_MALFORMED },
    { "GET / HTTP/1.1\nHost: api.example.org\n\n", HTTP_BAD, HTTP_MALFORMED },
    { "GET / HTTP/1.1\n", HTTP_BAD, HTTP_MALFORMED }, /* refused at once */
    { "BREW /pot HTTP/1.1\r\n" HOST END, HTTP_WHOLE, HTTP_NO_FAULT },
    { "GET /  HTTP/1.1\r\n" HOST END, HTTP_BAD, HTTP_MALFORMED },
    { "GET  / HTTP/1.1\r\n" HOST END, HTTP_BAD, HTTP_MALFORMED },
    { "GET /\r\n" HOST END, HTTP_BAD, HTTP_MALFORMED },
    { "GET\r\n" HOST END, HTTP_BAD, HTTP_MALFORMED },
    { "GET / HTTP/2.0\r\n" HOST END, HTTP_BAD, HTTP_MALFORMED },
    { "GET / HTTP/1.11\r\n" HOST END, HTTP_BAD, HTTP_MALFORMED },
    { "G@T / HTTP/1.1\r\n" HOST END, HTTP_BAD, HTTP_MALFORMED },
    { "AVERYLONGMETHODNAME / HTTP/1.1\r\n" HOST END, HTTP_BAD, HTTP_MALFORMED },
    { "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", HTTP_BAD, HTTP_MALFORMED },
    { "\r\n" LINE HOST END, HTTP_BAD, HTTP_MALFORMED },
    { "\026\003\001", HTTP_BAD, HTTP_MALFORMED },
    { LINE HOST "X: a\nY: b\r\n" END, HTTP_BAD, HTTP_MALFORMED },
    { LINE HOST "X: a\rY: b\r\n" END, HTTP_BAD, HTTP_MALFORMED },
    { LINE HOST " folded\r\n" END, HTTP_BAD, HTTP_MALFORMED },
    { LINE HOST "X : a\r\n" END, HTTP_BAD, HTTP_MALFORMED },
    { LINE HOST "no colon\r\n" END, HTTP_BAD, HTTP_MALFORMED },
    { LINE HOST ": empty\r\n" END, HTTP_BAD, HTTP_MALFORMED },
    { LINE HOST "X: \001\r\n" END, HTTP_BAD, HTTP_MALFORMED },
    { LINE HOST "X:\t a \t\r\n" END, HTTP_WHOLE, HTTP_NO_FAULT },
    { LINE END, HTTP_BAD, HTTP_MALFORMED }, /* no Host */
    { LINE HOST HOST END, HTTP_BAD, HTTP_MALFORMED },
    { LINE "Host: a b\r\n" END, HTTP_BAD, HTTP_BAD_HOST },
    { LINE "Host: api.example.org:\r\n" END, HTTP_BAD, HTTP_BAD_HOST },
    { LINE "Host: api.example.org:0\r\n" END, HTTP_BAD, HTTP_BAD_HOST },
    { LINE "Host: api.example.org:65536\r\n" END, HTTP_BAD, HTTP_BAD_HOST },
    { LINE "Host: api.example.org:000080\r\n" END, HTTP_BAD, HTTP_BAD_HOST },
    { LINE "Host: api.example.org:8x\r\n" END, HTTP_BAD, HTTP_BAD_HOST },
    { LINE HOST "Upgrade: websocket\r\n" END, HTTP_BAD, HTTP_UPGRADE },
    { LINE HOST EIGHT(EIGHT("X: a\r\n")) END, HTTP_BAD, HTTP_TOO_LARGE },
    { POST "Content-Length: 5\r\n" END, HTTP_WHOLE, HTTP_NO_FAULT },
    { POST "Content-Length: 5\r\nContent-Length: 5\r\n" END, HTTP_BAD, HTTP_MALFORMED },
    { POST "Content-Length: 5, 5\r\n" END, HTTP_BAD, HTTP_MALFORMED },
    { POST "Content-Length: +5\r\n" END, HTTP_BAD, HTTP_MALFORMED },
    { POST "Content-Length: 0x5\r\n" END, HTTP_BAD, HTTP_MALFORMED },
    { POST "Content-Length: \r\n" END, HTTP_BAD, HTTP_MALFORMED },
    { POST "Content-Length: 1234567890123456789\r\n" END, HTTP_BAD, HTTP_MALFORMED },
    { POST "Transfer-Encoding: chunked\r\n" END, HTTP_WHOLE, HTTP_NO_FAULT },
    { POST "Transfer-Encoding: Chunked\r\n" END, HTTP_WHOLE, HTTP_NO_FAULT },
    { POST "Transfer-Encoding: gzip, chunked\r\n" END, HTTP_BAD, HTTP_MALFORMED },
    { POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" END, HTTP_BAD,
      HTTP_MALFORMED },
    { POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n" END, HTTP_BAD, HTTP_MALFORMED },
    { POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n" END, HTTP_BAD, HTTP_MALFORMED },
    { POST "Expect: 100-continue\r\n" END, HTTP_WHOLE, HTTP_NO_FAULT },
    { POST "Expect: the worst\r\n" END, HTTP_BAD, HTTP_MALFORMED },
    { "GET http://api.example.org HTTP/1.1\r\n" HOST END, HTTP_WHOLE, HTTP_NO_FAULT },
    { "GET http://api.example.org/x HTTP/1.1\r\n" END, HTTP_WHOLE, HTTP_NO_FAULT },
    { "GET HTTP://API.example.org./x HTTP/1.1\r\n" HOST END, HTTP_WHOLE, HTTP_NO_FAULT },
    { "GET http://api.example.org/ HTTP/1.1\r\nHost: evil.org\r\n" END, HTTP_BAD,
      HTTP_HOST_DIFFERS },
    { "GET http://api.example.org:81/ HTTP/1.1\r\n" HOST END, HTTP_BAD, HTTP_HOST_DIFFERS },
    { "GET http://api.example.org?x HTTP/1.1\r\n" HOST END, HTTP_BAD, HTTP_MALFORMED },
    { "GET http://a@api.example.org/ HTTP/1.1\r\n" HOST END, HTTP_BAD, HTTP_MALFORMED },
    { "GET http:// HTTP/1.1\r\n" HOST END, HTTP_BAD, HTTP_MALFORMED },
    { "GET ftp://api.example.org/ HTTP/1.1\r\n" HOST END, HTTP_BAD, HTTP_MALFORMED },
    { "GET /#x HTTP/1.1\r\n" HOST END, HTTP_BAD, HTTP_MALFORMED },
    { "GET /\\x HTTP/1.1\r\n" HOST END, HTTP_BAD, HTTP_MALFORMED },
    { "GET /\xc3\xa4 HTTP/1.1\r\n" HOST END, HTTP_BAD, HTTP_MALFORMED },
    { "CONNECT api.example.org:443 HTTP/1.1\r\n" END, HTTP_WHOLE, HTTP_NO_FAULT },
    { "CONNECT api.example.org:443 HTTP/1.1\r\nHost: api.example.org\r\n" END, HTTP_WHOLE,
      HTTP_NO_FAULT },
    { "CONNECT api.example.org:443 HTTP/1.1\r\nHost: evil.org:443\r\n" END, HTTP_BAD,
      HTTP_HOST_DIFFERS },
    { "CONNECT api.example.org HTTP/1.1\r\n" END, HTTP_BAD, HTTP_MALFORMED },
    { "CONNECT api.example.org:0 HTTP/1.1\r\n" END, HTTP_BAD, HTTP_MALFORMED },
    { "CONNECT /x HTTP/1.1\r\n" END, HTTP_BAD, HTTP_MALFORMED },
    { "CONNECT api.example.org%2eevil.org:443 HTTP/1.1\r\n" END, HTTP_BAD, HTTP_MALFORMED },
};

TEST(a_head_has_one_meaning)
{
    for_each(fact, heads) {
        struct http_head head;
        enum http_fault fault;
        enum http_verdict verdict =
            http_head_read(fact->head, strlen(fact->head), 80, &head, &fault);
        expect(verdict == fact->verdict, "'%s' gave %u", fact->head, verdict);
        expect(verdict == HTTP_MORE || fault == fact->fault, "'%s' for fault %u", fact->head,
               fault);
        expect(verdict != HTTP_WHOLE || strcmp(head.name, "api.example.org") == 0, "'%s' names %s",
               fact->head, head.name);
    }
}

TEST(literals_are_kept_apart_from_names)
{
    static const struct {
        const char *where;
        const char *name;
        unsigned port;
    } facts[] = {
        { "127.0.0.1:443", "127.0.0.1", 443 },
        { "[::1]:443", "[::1]", 443 },
        { "0x7f.1:80", "0x7f.1", 80 },
        { "2130706433:1", "2130706433", 1 },
        { "[fe80::1%eth0]:443", "[fe80::1%eth0]", 443 },
    };
    for_each(fact, facts) {
        struct http_head head;
        enum http_fault fault;
        char text[128];
        (void) snprintf(text, sizeof text, "CONNECT %s HTTP/1.1\r\n\r\n", fact->where);
        enum http_verdict verdict = http_head_read(text, strlen(text), 80, &head, &fault);
        expect(verdict == HTTP_WHOLE && head.is_literal && strcmp(head.name, fact->name) == 0 &&
                   head.port == fact->port,
               "%s gave %u, '%s', %u", fact->where, verdict, head.name, head.port);
    }
}

TEST(the_size_of_heads_is_bounded)
{
    static char text[HTTP_HEAD_MAX + 1] = LINE HOST "X: ";
    struct http_head head;
    enum http_fault fault;
    memset(text + strlen(text), 'a', sizeof text - 1 - strlen(text));
    expect(http_head_read(text, HTTP_HEAD_MAX - 1, 80, &head, &fault) == HTTP_MORE, "below");
    expect(http_head_read(text, HTTP_HEAD_MAX, 80, &head, &fault) == HTTP_BAD &&
               fault == HTTP_TOO_LARGE,
           "fault %u", fault);
    expect(http_head_read("GET / HTTP/1.1\n", 14, 80, &head, &fault) == HTTP_MORE,
           "bytes after the head are not read");
    expect(http_head_read("GET \0", 5, 80, &head, &fault) == HTTP_BAD, "NUL");
}

TEST(a_head_is_written_from_its_parts)
{
    static const struct {
        const char *head;
        const char *written;
    } facts[] = {
        { "GET /a?b HTTP/1.0\r\nhost: API.example.org.\r\nX-Kept:  1 \r\nTE: trailers\r\n\r\n",
          "GET /a?b HTTP/1.1\r\nHost: api.example.org\r\nX-Kept: 1\r\nConnection: close\r\n\r\n" },
        { "GET http://api.example.org:8080 HTTP/1.1\r\n\r\n",
          "GET / HTTP/1.1\r\nHost: api.example.org:8080\r\nConnection: close\r\n\r\n" },
        { LINE HOST "Connection: x-a , X-B\r\nX-A: 1\r\nX-B: 2\r\nX-C: 3\r\n" END,
          "GET / HTTP/1.1\r\nHost: api.example.org\r\nX-C: 3\r\nConnection: close\r\n\r\n" },
        { POST "Content-Length: 007\r\n" END,
          "POST / HTTP/1.1\r\nHost: api.example.org\r\nContent-Length: 7\r\n"
          "Connection: close\r\n\r\n" },
        { POST "Transfer-Encoding: chunked\r\n" END,
          "POST / HTTP/1.1\r\nHost: api.example.org\r\nTransfer-Encoding: chunked\r\n"
          "Connection: close\r\n\r\n" },
    };
    for_each(fact, facts) {
        struct http_head head;
        enum http_fault fault;
        char written[512];
        require(http_head_read(fact->head, strlen(fact->head), 80, &head, &fault) == HTTP_WHOLE,
                "'%s': fault %u", fact->head, fault);
        size_t size = http_head_write(&head, written, sizeof written);
        expect(size == strlen(fact->written) && memcmp(written, fact->written, size) == 0,
               "'%s' became '%.*s'", fact->head, (int) size, written);
        for (size_t room = 0; room <= size; room++)
            expect(http_head_write(&head, written, room) == 0, "%zu bytes hold it", room);
    }
}

TEST(chunks_are_followed_byte_for_byte)
{
    static const struct {
        const char *bytes;
        enum http_chunk_verdict verdict; /* the last */
    } facts[] = {
        { "3\r\nabc\r\n0\r\n\r\n", CHUNK_END },
        { "3;x=y\r\nabc\r\n0;z\r\nTrailer: x\r\n\r\n", CHUNK_END },
        { "00003\r\nabc\r\n000\r\n\r\n", CHUNK_END },
        { "A\r\n0123456789\r\n", CHUNK_SKIP },
        { "\r\n", CHUNK_BAD },
        { "zz\r\n", CHUNK_BAD },
        { "-1\r\n", CHUNK_BAD },
        { "0x3\r\n", CHUNK_BAD },
        { "3\nabc\r\n", CHUNK_BAD },
        { "3\rabc", CHUNK_BAD },
        { "3\r\nabcX", CHUNK_BAD },
        { "3\r\nabc\rX", CHUNK_BAD },
        { "fffffffffffffffff\r\n", CHUNK_BAD },
        { "3;\001\r\n", CHUNK_BAD },
        { "0\r\nT\001\r\n", CHUNK_BAD },
        { "0\r\nT: x\rX", CHUNK_BAD },
    };
    for_each(fact, facts)
        for (size_t piece = 1; piece < 40; piece++) {
            struct http_chunks chunks = { 0 };
            enum http_chunk_verdict verdict = CHUNK_SKIP;
            size_t size = strlen(fact->bytes);
            for (size_t at = 0; at < size && verdict != CHUNK_BAD && verdict != CHUNK_END;) {
                size_t used;
                size_t here = size - at < piece ? size - at : piece;
                verdict = http_chunks_take(&chunks, fact->bytes + at, here, &used);
                at += used;
            }
            expect(verdict == fact->verdict, "'%s' by %zu gave %u", fact->bytes, piece, verdict);
        }
}

TEST(the_size_of_lines_between_chunks_is_bounded)
{
    static char line[8192] = "3;";
    struct http_chunks chunks = { 0 };
    size_t used;
    memset(line + 2, 'x', sizeof line - 2);
    expect(http_chunks_take(&chunks, line, sizeof line, &used) == CHUNK_BAD && used < 5000, "%zu",
           used);
    struct http_chunks ended = { 0 };
    expect(http_chunks_take(&ended, "0\r\n\r\n", 5, &used) == CHUNK_END, "the end");
    expect(http_chunks_take(&ended, "more", 4, &used) == CHUNK_END && used == 0, "after the end");
}

TESTS(CASE(a_head_has_one_meaning), CASE(literals_are_kept_apart_from_names),
      CASE(the_size_of_heads_is_bounded), CASE(a_head_is_written_from_its_parts),
      CASE(chunks_are_followed_byte_for_byte), CASE(the_size_of_lines_between_chunks_is_bounded))
