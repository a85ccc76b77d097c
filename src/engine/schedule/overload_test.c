/* overload_test.c - when the queue is shortened, and to which length. */
#include "base/table.h"
#include "base/test.h"
#include "engine/schedule/overload.h"

TEST(it_lasts_as_long_as_requests_are_refused)
{
    struct overload overload = { 0 };
    expect(!overload_is_there(&overload, 0) && !overload_is_there(&overload, 5000),
           "there was none");
    overload_refused(&overload, 5000);
    expect(overload_is_there(&overload, 5000 + OVERLOAD_LASTS_MS - 1), "it has gone early");
    overload_refused(&overload, 6000);
    expect(overload_is_there(&overload, 5000 + OVERLOAD_LASTS_MS),
           "the second refusal was forgotten");
    expect(!overload_is_there(&overload, 6000 + OVERLOAD_LASTS_MS), "it does not go");
}

TEST(half_as_many_wait_as_are_served_and_each_key_may_have_one)
{
    static const struct {
        uint32_t served, busy, keys, share;
    } facts[] = {
        { 12, 8, 1, 6 }, { 12, 8, 2, 3 },
        { 12, 8, 3, 2 }, { 12, 8, 13, 1 }, /* who is new is never shut out */
        { 0, 0, 1, 1 },  { 0, 0, 0, 1 },
        { 2, 2, 1, 1 },  { 4, 8, 1, 4 }, /* eight are no crowd */
        { 7, 8, 1, 3 },  { 0, 8, 2, 4 },
        { 0, 8, 0, 8 },  { 12, 17, 1, 6 },
    };
    for_each(fact, facts)
        expect(overload_share(fact->served, fact->busy, fact->keys) == fact->share,
               "%u served, %u keys: %u", fact->served, fact->keys,
               overload_share(fact->served, fact->busy, fact->keys));
}

TESTS(CASE(it_lasts_as_long_as_requests_are_refused),
      CASE(half_as_many_wait_as_are_served_and_each_key_may_have_one))
