/* refusals_test.c - refusals are delayed on connections that go on asking, while there are many. */
#include "doors/http/refusals.h"

#include "base/test.h"

enum { NOW_MS = 1000000 };

/* How many of `count` refusals in a row are delayed, one every `every_us`, beginning at
 * `*at_ms`. */
static unsigned put_off(struct refusals *all, struct refused *own, unsigned count, int64_t *at_us,
                        int64_t every_us)
{
    unsigned waits = 0;
    for (unsigned i = 0; i < count; i++, *at_us += every_us)
        waits += refusal_waits(all, own, *at_us / 1000);
    return waits;
}

TEST(few_refusals_are_answered_at_once)
{
    struct refusals all = { 0 };
    struct refused own = { 0 };
    int64_t at_us = INT64_C(1000) * NOW_MS;
    expect(put_off(&all, &own, 5000, &at_us, 2500) == 0, "400 a second");
}

TEST(refusals_in_a_row_are_put_off_while_there_are_many)
{
    struct refusals all = { 0 };
    struct refused own = { 0 }, other = { 0 };
    int64_t at_us = INT64_C(1000) * NOW_MS;
    expect(put_off(&all, &own, REFUSED_ALL, &at_us, 200) == 0, "the first of a second");
    expect(put_off(&all, &own, 500, &at_us, 200) == 500, "those beyond them");
    expect(put_off(&all, &other, 10, &at_us, 200) == 10 - REFUSED_IN_A_ROW,
           "another connection is put off only when it goes on itself");
    at_us += INT64_C(1000) * REFUSED_SECOND_MS - 100000;
    expect(put_off(&all, &own, 10, &at_us, 200) == 10, "the next second begins with none");
    own = (struct refused){ 0 }; /* after a request that succeeded */
    expect(put_off(&all, &own, 10, &at_us, 200) == 10 - REFUSED_IN_A_ROW, "it counts from before");
}

TEST(after_a_pause_nothing_is_put_off)
{
    struct refusals all = { 0 };
    struct refused own = { 0 };
    int64_t at_us = INT64_C(1000) * NOW_MS;
    expect(put_off(&all, &own, 4000, &at_us, 200) > 3000, "many");
    at_us += INT64_C(2000) * REFUSED_SECOND_MS;
    expect(put_off(&all, &own, REFUSED_ALL, &at_us, 200) == 0, "after two seconds");
}

TESTS(CASE(few_refusals_are_answered_at_once),
      CASE(refusals_in_a_row_are_put_off_while_there_are_many),
      CASE(after_a_pause_nothing_is_put_off))
