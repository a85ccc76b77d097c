/* loop_monitor_test.c - which turns are counted, and under which name. */
#include "engine/observe/loop_monitor.h"

#include "base/clock.h"
#include "base/test.h"
#include "engine/observe/log.h"
#include "engine/observe/metrics.h"

#include <string.h>

static bool is_told(const char *line)
{
    auto_bytes text = { 0 };
    metrics_write(&text);
    return strstr(bytes_text(&text), line) != NULL;
}

TEST(a_slow_turn_is_counted_by_what_took_longest)
{
    log_until(LOG_ERROR);
    struct loop_place outer = loop_enter(CAUSE_HTTP, NULL);
    struct loop_place inner = loop_enter(CAUSE_REQUEST, "/v1/runs");
    loop_leave(inner);
    loop_leave(outer);
    (void) loop_enter(CAUSE_RESULT, NULL);
    loop_turn_ends(now_us() + 30000); /* as if it had been at it for that long */
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

TESTS(CASE(a_slow_turn_is_counted_by_what_took_longest), CASE(time_without_a_word_is_no_turn))
