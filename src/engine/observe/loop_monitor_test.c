/* loop_monitor_test.c - which turns are counted, and under which name. */
#include "engine/observe/loop_monitor.h"

#include "base/clock.h"
#include "base/test.h"
#include "engine/observe/log.h"
#include "engine/observe/metrics.h"

#include <string.h>
#include <time.h>

static bool is_told(const char *line)
{
    auto_bytes text = { 0 };
    metrics_write(&text);
    return strstr(bytes_text(&text), line) != NULL;
}

static void use_processor(int64_t ms)
{
    struct timespec began, now;
    (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
    do
        (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - began.tv_sec) * 1000 + (now.tv_nsec - began.tv_nsec) / 1000000 < ms);
}

TEST(a_slow_turn_is_counted_by_what_took_longest)
{
    log_until(LOG_ERROR);
    struct loop_place outer = loop_enter(CAUSE_HTTP, NULL);
    struct loop_place inner = loop_enter(CAUSE_REQUEST, "/v1/runs");
    loop_leave(inner);
    loop_leave(outer);
    (void) loop_enter(CAUSE_RESULT, NULL);
    int64_t began_us = now_us();
    use_processor(30);
    loop_turn_ends(began_us + 30000); /* whatever time it waited for a processor */
    expect(is_told("\nglovebox_loop_slow_turns_total{cause=\"frame_result\"} 1\n"), "one");
    expect(is_told("\nglovebox_loop_slow_turns_total{cause=\"request\"} 0\n"), "no other");
    expect(is_told("\nglovebox_loop_turn_seconds_count 1\n"), "one turn");
    expect(is_told("\nglovebox_loop_turn_seconds_bucket{le=\"0.0250\"} 0\n"), "of 30 ms");
}

TEST(time_without_a_word_is_no_turn)
{
    uint64_t number = loop_turn_number();
    loop_turn_ends(now_us() + 30000);
    expect(loop_turn_number() == number && is_told("\nglovebox_loop_turn_seconds_count 1\n"),
           "the loop slept");
    expect(loop_turn_us() == 0, "%d us", (int) loop_turn_us());
}

TEST(a_turn_without_a_processor_blames_nothing_that_was_done)
{
    (void) loop_enter(CAUSE_LOG, NULL);
    loop_turn_ends(now_us() + 30000); /* as if other threads had used the processor */
    expect(is_told("\nglovebox_loop_slow_turns_total{cause=\"processor\"} 1\n"), "it waited");
    (void) loop_enter(CAUSE_LOG, NULL);
    (void) nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL); /* as for a disk */
    loop_turn_ends(now_us() + 60000);
    expect(is_told("\nglovebox_loop_slow_turns_total{cause=\"log\"} 1\n"), "it slept");
    expect(is_told("\nglovebox_loop_stalls_total{cause=\"log\"} 1\n"), "for more than 50 ms");
    expect(is_told("\nglovebox_loop_stalls_total{cause=\"processor\"} 0\n"), "of 30 ms");
    expect(is_told("\nglovebox_loop_slow_turns_total{cause=\"processor\"} 1\n"), "and that alone");
}

TESTS(CASE(a_slow_turn_is_counted_by_what_took_longest), CASE(time_without_a_word_is_no_turn),
      CASE(a_turn_without_a_processor_blames_nothing_that_was_done))
