/* rate_limits_test.c - how often an endpoint may be called. */
#include "base/table.h"
#include "base/test.h"
#include "egress/upstream_request.h"

#include <stdio.h>

enum { MINUTE_MS = 60000, MANY = 300 };

static struct egress_endpoint numbered(unsigned number, uint32_t rate)
{
    struct egress_endpoint endpoint = { .rate = rate, .port = 443, .host = "api.example.org" };
    (void) snprintf(endpoint.name, sizeof endpoint.name, "e%u", number);
    return endpoint;
}

TEST(a_minute_brings_as_many_requests_as_the_rate_says)
{
    const struct egress_endpoint slow = numbered(1, 2);
    const struct egress_endpoint free = numbered(2, 0);
    static const struct {
        int64_t at_ms;
        bool is_allowed;
    } facts[] = {
        { 1000, true },   { 1000, true },   { 1000, false },  { 30999, false },  { 31000, true },
        { 31000, false }, { 900000, true }, { 900000, true }, { 900000, false }, /* two minutes do
                                                                                    not add up */
    };
    for_each(fact, facts) {
        expect(rate_allows(&slow, fact->at_ms) == fact->is_allowed, "row %ld",
               (long) (fact - facts));
        expect(rate_allows(&free, fact->at_ms), "no rate, row %ld", (long) (fact - facts));
    }
}

TEST(no_rate_is_forgotten_however_many_endpoints_are_asked_in_turn)
{
    int64_t now = 100 * (int64_t) MINUTE_MS;
    int64_t later = 102 * (int64_t) MINUTE_MS;
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 0; i < MANY; i++) {
            struct egress_endpoint endpoint = numbered(100 + i, 1);
            expect(rate_allows(&endpoint, now + i) == (round == 0), "endpoint %u, round %u", i,
                   round);
        }
    for (unsigned i = 0; i < MANY;
         i++) { /* a minute later they are full; others take their places */
        struct egress_endpoint endpoint = numbered(1000 + i, 1);
        expect(rate_allows(&endpoint, later), "endpoint %u", i);
        expect(!rate_allows(&endpoint, later), "endpoint %u again", i);
    }
}

TEST(too_many_endpoints_are_refused)
{
    int64_t now = 200 * (int64_t) MINUTE_MS;
    unsigned allowed = 0;
    for (unsigned i = 0; i < 1200; i++) {
        struct egress_endpoint endpoint = numbered(5000 + i, 1);
        allowed += rate_allows(&endpoint, now);
    }
    expect(allowed == 1024, "%u of 1200", allowed);
}

TESTS(CASE(a_minute_brings_as_many_requests_as_the_rate_says),
      CASE(no_rate_is_forgotten_however_many_endpoints_are_asked_in_turn),
      CASE(too_many_endpoints_are_refused))
