/* service_watch_test.c - invented positions, and an error that is replaced while it is read. */
#include "base/test.h"

#include "engine/run/run.h"
#include "engine/service/service_watch_internal.h"

#include <stdio.h>
#include <string.h>

static void do_nothing(void *context)
{
    (void) context;
}

static const struct watcher watcher = { .woken = do_nothing, .cut = do_nothing };

static void end_run(struct run *run)
{
    *run = (struct run){ .id = "run_0",
                         .kind = &run_kind_oneshot,
                         .state = RUN_DONE,
                         .is_detached = true, /* it keeps its buffers */
                         .has_harvest = true };
}

TEST(a_made_up_position_stays_within_the_results)
{
    static const char results[] = "{1},\t{22}";
    static struct run run;
    error err;
    end_run(&run);
    bytes_add_text(&run.collector.results, results);
    struct watch *watch = watch_open(&run, &watcher, &err);
    require(watch, "%s", err.text);
    for (size_t at = 0; at < sizeof results; at++) {
        char position[WATCH_POSITION_SIZE];
        struct run_event event = { .kind = EVENT_END };
        (void) snprintf(position, sizeof position, "1-0-0-%zu-0-0", at);
        expect(watch_seek(watch, position, &err) == 0, "%s", err.text);
        expect(watch_next(watch, &event) == WATCH_EVENT, "at %zu", at);
        expect(event.size <= event.in->size && event.from <= event.in->size - event.size,
               "at %zu: %zu bytes from %zu", at, event.size, event.from);
    }
    watch_close(watch);
    bytes_done(&run.collector.results);
}

TEST(an_error_that_is_being_read_does_not_change)
{
    static struct run run;
    struct run_event event;
    error err;
    end_run(&run);
    bytes_add_text(&run.collector.failure, "{\"name\":\"First\"}");
    struct watch *watch = watch_open(&run, &watcher, &err);
    require(watch, "%s", err.text);
    require(watch_next(watch, &event) == WATCH_EVENT && event.kind == EVENT_ERROR, "the error");
    bytes_done(&run.collector.failure);
    expect(event.size == strlen("{\"name\":\"First\"}") &&
               memcmp(event.in->data + event.from, "{\"name\":\"First\"}", event.size) == 0,
           "what was given changed");
    watch_close(watch);
}

TESTS(CASE(a_made_up_position_stays_within_the_results),
      CASE(an_error_that_is_being_read_does_not_change))
