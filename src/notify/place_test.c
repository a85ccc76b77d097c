/* place_test.c - which URLs events may be sent to. */
#include "base/table.h"
#include "base/test.h"
#include "notify/notify.h"

TEST(a_place_is_https_or_this_host)
{
    static const struct {
        const char *url;
        int port; /* 0: refused */
        unsigned known;
    } facts[] = {
        { "https://hooks.example.org/a?b=c", 443, 0 },
        { "https://hooks.example.org:8443/", 8443, 0 },
        { "https://192.0.2.1/", 443, 1 },
        { "https://[2001:db8::1]:1/", 1, 1 },
        { "http://127.0.0.1:8000/x", 8000, 1 },
        { "http://127.9.9.9:8000/x", 8000, 1 },
        { "http://[::1]/", 80, 1 },
        { "http://localhost:1/", 1, 2 },
        { "http://hooks.example.org/", 0, 0 }, /* not unencrypted */
        { "http://192.0.2.1/", 0, 0 },
        { "http://localhost.example.org/", 0, 0 },
        { "https://user@hooks.example.org/", 0, 0 },
        { "https://user:word@hooks.example.org/", 0, 0 },
        { "https://hooks.example.org/#part", 0, 0 },
        { "ftp://hooks.example.org/", 0, 0 },
        { "file:///etc/passwd", 0, 0 },
        { "hooks.example.org", 0, 0 },
        { "https://", 0, 0 },
        { "https://a b/", 0, 0 },
        { "", 0, 0 },
    };
    for_each(fact, facts) {
        struct place place;
        error err = { 0 };
        int result = place_read("webhook", fact->url, &place, &err);
        expect((result == 0) == (fact->port != 0), "'%s' gave %d: %s", fact->url, result, err.text);
        if (result == 0)
            expect(place.port == fact->port && place.known_count == fact->known,
                   "'%s' gave port %d and %u addresses", fact->url, place.port, place.known_count);
    }
}

TESTS(CASE(a_place_is_https_or_this_host))
