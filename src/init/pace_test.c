/* pace_test.c - a program that writes without a pause, and one that pauses. */
#include "init/pace.h"

#include "base/test.h"

/* Reads whenever it may, once a millisecond. Returns how often it could read. */
static unsigned heard(struct pace *pace, int64_t from_ms, int64_t to_ms)
{
    unsigned count = 0;
    for (int64_t now = from_ms; now < to_ms; now++) {
        if (pace_is_spent(pace))
            pace_falls(pace, now);
        for (; !pace_is_spent(pace); count++)
            pace_use(pace);
    }
    return count;
}

TEST(endless_denials_are_reported_at_a_steady_rate)
{
    struct pace pace = { 0 };
    unsigned first = heard(&pace, 1000, 2000);
    expect(first >= PACE_AT_ONCE && first <= PACE_AT_ONCE + PACE_A_SECOND + 10, "%u", first);
    unsigned later = heard(&pace, 2000, 12000);
    expect(later >= 10 * PACE_A_SECOND - 20 && later <= 10 * PACE_A_SECOND + 20, "%u", later);
}

TEST(a_pause_gives_back_no_more_than_there_was)
{
    struct pace pace = { 0 };
    (void) heard(&pace, 1000, 2000);
    unsigned after = heard(&pace, 1000000, 1000001);
    expect(after == PACE_AT_ONCE, "%u", after);
}

TESTS(CASE(endless_denials_are_reported_at_a_steady_rate),
      CASE(a_pause_gives_back_no_more_than_there_was))
