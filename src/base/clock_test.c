/* clock_test.c - a deadline that has passed stays passed. */
#include "base/clock.h"

#include "base/test.h"

#include <time.h>

TEST(clocks_agree_on_their_units)
{
    int64_t before_us = now_us();
    int64_t ms = now_ms();
    int64_t after_us = now_us();
    expect(before_us > 0 && before_us <= after_us, "time does not run back");
    expect(ms >= before_us / 1000 && ms <= after_us / 1000, "milliseconds and microseconds");
    int64_t wall = wall_clock_ms();
    int64_t seconds = (int64_t) time(NULL);
    expect(wall / 1000 >= seconds - 1 && wall / 1000 <= seconds + 1, "the wall clock");
}

TEST(a_deadline_counts_down)
{
    deadline far = deadline_in(60000);
    int64_t left = deadline_left_ms(far);
    expect(left > 50000 && left <= 60000, "%d ms are left", (int) left);
    expect(!deadline_has_passed(far), "a minute has not passed");

    deadline soon = deadline_in(2);
    struct timespec nap = { .tv_nsec = 5000000 };
    (void) nanosleep(&nap, NULL);
    expect(deadline_has_passed(soon) && deadline_left_ms(soon) == 0, "2 ms have passed");
    expect(deadline_has_passed(deadline_in(0)) && deadline_has_passed(deadline_in(-5)), "at once");
}

TESTS(CASE(clocks_agree_on_their_units), CASE(a_deadline_counts_down))
