/* request_guard_test.c - which requests a daemon that listens on this machine accepts. */
#include "base/test.h"

#include "base/table.h"
#include "doors/http/request_guard.h"

TEST(only_this_machine_may_call)
{
    static const struct {
        const char *host, *origin;
        bool is_remote;
        int result;
    } facts[] = {
        { "localhost", NULL, true, 0 },
        { "LOCALHOST:7070", NULL, true, 0 },
        { "127.0.0.1:7070", NULL, true, 0 },
        { "[::1]:7070", NULL, true, 0 },
        { "[::1]", NULL, true, 0 },
        { NULL, NULL, true, -1 },
        { "evil.example", NULL, true, -1 },
        { "localhost.evil.example", NULL, true, -1 },
        { "127.0.0.1.evil.example", NULL, true, -1 },
        { "localhost:", NULL, true, -1 },
        { "localhost:99999x", NULL, true, -1 },
        { "evil.example", NULL, false, 0 }, /* on a Unix socket the Host is not checked */
        { "localhost", "http://localhost:7070", true, 0 },
        { "localhost", "http://127.0.0.1", true, 0 },
        { "localhost", "https://localhost", true, -1 },
        { "localhost", "http://evil.example", true, -1 },
        { "localhost", "http://localhost.evil.example", true, -1 },
        { "localhost", "null", true, -1 },
        { "localhost", "null", false, -1 },
    };
    for_each(fact, facts) {
        error err;
        expect(guard_origin(fact->host, fact->origin, fact->is_remote, NULL, &err) == fact->result,
               "Host %s, Origin %s", fact->host ? fact->host : "-",
               fact->origin ? fact->origin : "-");
    }
}

TEST(an_operator_names_hosts_and_origins)
{
    static const struct guard_names names = { "box.example.com, other.example",
                                              "https://app.example.com,http://[::1]:5173" };
    static const struct {
        const char *host, *origin;
        int result;
    } facts[] = {
        { "box.example.com", NULL, 0 },
        { "Box.Example.com:8443", NULL, 0 },
        { "other.example", NULL, 0 },
        { "localhost", NULL, 0 },
        { "", NULL, -1 },
        { "example.com", NULL, -1 },
        { "box.example.com.", NULL, -1 },
        { "box.example.com:", NULL, -1 },
        { "box.example.com:80x", NULL, -1 },
        { "box.example.com, other.example", NULL, -1 },
        { "evil.box.example.com", NULL, -1 },
        { "box.example.com", "https://app.example.com", 0 },
        { "localhost", "https://app.example.com", 0 },
        { "localhost", "http://[::1]:5173", 0 },
        { "localhost", "http://app.example.com", -1 },
        { "localhost", "https://app.example.com:444", -1 },
        { "localhost", "https://box.example.com", -1 },
        { "localhost", "", -1 },
        { "localhost", "null", -1 },
    };
    for_each(fact, facts) {
        error err;
        expect(guard_origin(fact->host, fact->origin, true, &names, &err) == fact->result,
               "Host %s, Origin %s", fact->host, fact->origin ? fact->origin : "-");
    }
}

TEST(headers_say_one_thing)
{
    static const struct {
        const char *headers[8]; /* name, value, … */
        int result;
    } facts[] = {
        { { "Host", "localhost", "Content-Length", "3", "X-A", "b", "X-A", "b" }, 0 },
        { { "Host", "localhost", "transfer-encoding", "Chunked" }, 0 },
        { { "Host", "localhost", "host", "evil.example" }, -1 },
        { { "Content-Length", "3", "Content-Length", "3" }, -1 },
        { { "Content-Length", "3", "Transfer-Encoding", "chunked" }, -1 },
        { { "Transfer-Encoding", "chunked", "content-length", "3" }, -1 },
        { { "Transfer-Encoding", "gzip, chunked" }, -1 },
        { { "Transfer-Encoding", "identity" }, -1 },
        { { "Transfer-Encoding", "\vchunked" }, -1 },
        { { "Transfer-Encoding", "chunked", "Transfer-Encoding", "chunked" }, -1 },
        { { "Origin", "http://localhost", "Origin", "http://evil.example" }, -1 },
        { { "Content-Length ", "3" }, -1 },
        { { "X Y", "z" }, -1 },
        { { "", "z" }, -1 },
        { { "X\tY", "z" }, -1 },
        { { "X:Y", "z" }, -1 },
        { { "X", "a\tb \xc3\xa9" }, 0 },
        { { "X", "a\rContent-Length: 3" }, -1 },
        { { "X", "\x7f" }, -1 },
        { { "content-length0", "5" }, -1 },
        { { "Transfer-Encodingchunked", "" }, -1 },
        { { "Content-Len", "5" }, 0 },
    };
    for_each(fact, facts) {
        struct guard_headers seen = { 0 };
        error err;
        int result = 0;
        for (size_t i = 0; i < COUNT_OF(fact->headers) && fact->headers[i] && result == 0; i += 2)
            result = guard_header(&seen, fact->headers[i], fact->headers[i + 1], &err);
        expect(result == fact->result, "'%s: %s' gave %d", fact->headers[0], fact->headers[1],
               result);
    }
}

TEST(targets_are_plain)
{
    static const struct {
        const char *text;
        bool is_plain;
    } facts[] = {
        { "", true },      { "/a%20b?c=d#e", true }, { "/\xc3\xa9", true }, { "a b", false },
        { "a\tb", false }, { "a\rb", false },        { "a\x7f", false },
    };
    for_each(fact, facts)
        expect(guard_target(fact->text) == fact->is_plain, "'%s'", fact->text);
}

TESTS(CASE(targets_are_plain), CASE(only_this_machine_may_call),
      CASE(an_operator_names_hosts_and_origins), CASE(headers_say_one_thing))
