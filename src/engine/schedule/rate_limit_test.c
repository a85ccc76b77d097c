/* rate_limit_test.c - a minute and a day, with clocks that the test sets. */
#include "base/test.h"
#include "engine/schedule/rate_limit.h"

static const int64_t noon_s = INT64_C(20000) * 86400 + 43200;

static int ask(struct rate *rate, struct rate_quota quota, int64_t now_ms, uint32_t *wait_s)
{
    *wait_s = 0;
    int answer = (int) rate_ask(rate, &quota, now_ms, noon_s + now_ms / 1000, wait_s);
    if (answer == RATE_FREE)
        rate_take(rate);
    return answer;
}

TEST(runs_come_in_a_burst_and_then_steadily)
{
    struct rate rate = { 0 };
    struct rate_quota quota = { .runs_per_minute = 6 };
    uint32_t wait_s;
    for (int i = 0; i < 6; i++)
        expect(ask(&rate, quota, 1000, &wait_s) == RATE_FREE, "run %d is refused", i);
    expect(ask(&rate, quota, 1000, &wait_s) == RATE_RUNS_USED_UP, "a seventh run is taken");
    expect(wait_s == 11, "it is to wait %u s", wait_s);
    expect(ask(&rate, quota, 1000 + 5000, &wait_s) == RATE_RUNS_USED_UP && wait_s == 6,
           "after 5 s of 10 it is to wait %u s", wait_s);
    expect(ask(&rate, quota, 1000 + 9000, &wait_s) == RATE_RUNS_USED_UP, "after 9 s");
    expect(ask(&rate, quota, 1000 + 10100, &wait_s) == RATE_FREE, "after 10 s it is refused");
    expect(ask(&rate, quota, 1000 + 10200, &wait_s) == RATE_RUNS_USED_UP, "and one more");
    struct rate_left left;
    rate_look(&rate, &quota, noon_s, &left);
    expect(left.runs == 0 && left.runs_reset_s == 60, "%u runs, full in %u s", left.runs,
           left.runs_reset_s);
}

TEST(a_day_ends)
{
    struct rate rate = { 0 };
    struct rate_quota quota = { .cpu_seconds_per_day = 10 };
    uint32_t wait_s;
    expect(ask(&rate, quota, 1000, &wait_s) == RATE_FREE, "at first");
    rate_charge(&rate, 9999);
    expect(ask(&rate, quota, 2000, &wait_s) == RATE_FREE, "1 ms is left");
    rate_charge(&rate, 1);
    expect(ask(&rate, quota, 3000, &wait_s) == RATE_CPU_USED_UP, "10 s are used up");
    expect(wait_s == 43200 - 3, "it is to wait %u s", wait_s);
    expect(ask(&rate, quota, INT64_C(43201) * 1000, &wait_s) == RATE_FREE, "the next day");
}

TEST(a_clock_that_is_set_back_begins_no_day)
{
    struct rate rate = { 0 };
    struct rate_quota quota = { .cpu_seconds_per_day = 10, .log_bytes_per_day = 100 };
    struct rate_left left;
    uint32_t wait_s;
    expect(!rate_day_is_over(&rate, &quota, noon_s, &wait_s), "at first");
    rate_charge(&rate, 10000);
    rate_charge_log(&rate, 100);
    expect(rate_day_is_over(&rate, &quota, noon_s + 1, &wait_s), "10 s are used up");
    rate_look(&rate, &quota, noon_s + 86400, &left);
    expect(left.cpu_s == 10, "%u s of the next day", (unsigned) left.cpu_s);
    expect(!rate_day_is_over(&rate, &quota, noon_s + 86400, &wait_s), "the clock was set forward");
    rate_charge(&rate, 10000);
    rate_charge_log(&rate, 100);
    expect(rate_day_is_over(&rate, &quota, noon_s + 2, &wait_s) && wait_s == 43198,
           "and back: it is to wait %u s", wait_s);
    expect(rate_ask_log(&rate, &quota, noon_s + 2, &wait_s) == RATE_LOG_USED_UP, "the log as well");
    expect(!rate_day_is_over(&rate, &quota, noon_s + 43200, &wait_s), "the next day");
}

TEST(leftovers_are_reported)
{
    struct rate rate = { 0 };
    struct rate_quota quota = { .runs_per_minute = 1, .cpu_seconds_per_day = 10 };
    struct rate_left left;
    uint32_t wait_s;
    expect(ask(&rate, quota, 1000, &wait_s) == RATE_FREE, "the first run");
    expect(ask(&rate, quota, 1000, &wait_s) == RATE_RUNS_USED_UP && wait_s == 61,
           "a minute and what rounding needs: %u s", wait_s);
    rate_look(&rate, &quota, noon_s, &left);
    expect(left.cpu_s == 10, "%u s of a day that has just begun", (unsigned) left.cpu_s);
    rate_charge(&rate, 2500);
    rate_look(&rate, &quota, noon_s, &left);
    expect(left.cpu_s == 7 && left.cpu_reset_s == 43200, "%u s of this day, which ends in %u s",
           (unsigned) left.cpu_s, left.cpu_reset_s);
    rate_charge(&rate, 7500);
    rate_look(&rate, &quota, noon_s, &left);
    expect(left.cpu_s == 0, "%u s", (unsigned) left.cpu_s);
}

TEST(no_quota_refuses_nothing)
{
    struct rate rate = { 0 };
    uint32_t wait_s;
    for (int i = 0; i < 100; i++)
        expect(ask(&rate, (struct rate_quota){ 0 }, 5, &wait_s) == RATE_FREE, "run %d", i);
    rate_charge(&rate, UINT64_MAX / 2);
    expect(ask(&rate, (struct rate_quota){ 0 }, 6, &wait_s) == RATE_FREE, "after much work");
}

TESTS(CASE(runs_come_in_a_burst_and_then_steadily), CASE(a_day_ends),
      CASE(a_clock_that_is_set_back_begins_no_day), CASE(leftovers_are_reported),
      CASE(no_quota_refuses_nothing))
