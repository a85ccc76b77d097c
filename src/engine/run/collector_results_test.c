/* collector_results_test.c - how many values the results of a run may have together: doors make
 * trees of them, which need much more memory and time than the text. */
#include "base/test.h"

#include "base/table.h"
#include "engine/run/collector.h"

#include <string.h>

static struct limits limits;

static void begin(struct collector *collector)
{
    limits_init(&limits);
    collector_init(collector, &limits, "data", NULL);
    collector->phase = COLLECTOR_RUNNING;
    collector->running = ID_INTERPRETER;
    collector->has_started = true;
}

/* One whole result of the code. */
static void show(struct collector *collector, enum agent_result_what what, const char *json)
{
    unsigned char payload[256];
    struct agent_result result = { .what = (uint16_t) what, .last = 1 };
    size_t size = strlen(json);
    struct agent_frame frame = { .size = (uint32_t) (sizeof result + size),
                                 .kind = AGENT_RESULT,
                                 .id = ID_INTERPRETER };
    error err = { 0 };
    require(frame.size <= sizeof payload, "%s", json);
    memcpy(payload, &result, sizeof result);
    memcpy(payload + sizeof result, json, size);
    require(collector_frame(collector, &frame, payload, &err) >= 0, "%s", err.text);
}

static const char display[] = "{\"data\":{\"a/b\":[1]}}"; /* three values */

TEST(values_count_for_all_results_together)
{
    static const struct {
        enum agent_result_what what;
        uint64_t before, after; /* values */
    } facts[] = {
        { AGENT_RESULT_DISPLAY, 0, 3 },
        { AGENT_RESULT_DISPLAY, 10, 13 },
        { AGENT_RESULT_VALUE, JSON_COPY_VALUES_MAX - 3, JSON_COPY_VALUES_MAX },
        { AGENT_RESULT_VALUE, JSON_COPY_VALUES_MAX - 2, JSON_COPY_VALUES_MAX - 2 },
        { AGENT_RESULT_DISPLAY, JSON_COPY_VALUES_MAX, JSON_COPY_VALUES_MAX },
    };
    static struct collector collector;
    for_each(fact, facts) {
        bool is_shown = fact->after > fact->before;
        begin(&collector);
        collector.result_values = fact->before;
        show(&collector, fact->what, display);
        expect((collector.results.size > 0) == is_shown && collector.result_values == fact->after,
               "%d values", (int) collector.result_values);
        expect(collector.denials.count == (is_shown ? 0 : 1), "%zu denials",
               collector.denials.count);
        collector_done(&collector);
    }
}

TEST(a_result_that_is_left_out_takes_no_room)
{
    static struct collector collector;
    begin(&collector);
    show(&collector, AGENT_RESULT_DISPLAY, "{\"data\":{\"a/b\":[1,2,3,4,5,NaN]}}");
    expect(collector.result_values == 0 && collector.denials.count == 1 &&
               strcmp(collector.denials.rows[0].layer, "output") == 0,
           "%d values, %zu denials", (int) collector.result_values, collector.denials.count);
    show(&collector, AGENT_RESULT_DISPLAY, display);
    expect(collector.results.size > 0 && collector.result_values == 3, "%d values",
           (int) collector.result_values);
    collector_done(&collector);
}

/* It is kept once, apart from the results. */
TEST(an_exception_needs_no_room_of_results)
{
    static struct collector collector;
    begin(&collector);
    collector.result_values = JSON_COPY_VALUES_MAX;
    show(&collector, AGENT_RESULT_ERROR, "{\"name\":\"E\"}");
    expect(collector.failure.size > 0 && collector.result_values == JSON_COPY_VALUES_MAX,
           "%d values", (int) collector.result_values);
    collector_done(&collector);
}

TESTS(CASE(values_count_for_all_results_together), CASE(a_result_that_is_left_out_takes_no_room),
      CASE(an_exception_needs_no_room_of_results))
