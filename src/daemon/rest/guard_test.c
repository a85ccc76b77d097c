/* guard_test.c - who may call a daemon that listens on this machine. */
#include "base/test.h"

#include "base/table.h"
#include "daemon/rest/guard.h"

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
        { "evil.example", NULL, false, 0 }, /* over a Unix socket the name means nothing */
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
        expect(guard_origin(fact->host, fact->origin, fact->is_remote, &err) == fact->result,
               "Host %s, Origin %s", fact->host ? fact->host : "-",
               fact->origin ? fact->origin : "-");
    }
}

TESTS(CASE(only_this_machine_may_call))
