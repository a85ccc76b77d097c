/* loop_monitor.h - what the event loop spends its turns on.
 *
 * All requests wait while one callback runs. Each kind of callback gives its name when it begins. A
 * turn of more than 20 ms is counted under the name that took longest in it (`processor` if the
 * thread was ready, but did not run for most of the time) and logged with its route, if it has one,
 * at most once a second. All turns are in the histogram `glovebox_loop_turn_seconds`. Each name
 * costs one reading of the clock. */
#pragma once

#include <stdint.h>
#include <uv.h>

enum loop_cause {
#define CAUSE(name, ...) CAUSE_##name,
#include "engine/observe/loop_causes.def"
    LOOP_CAUSES
};

const char *loop_cause_name(unsigned cause);

/* The name before, for loop_leave(). */
struct loop_place {
    enum loop_cause cause;
    const char *what;
};

/* The name from here on. `what` gives more detail, or NULL; it must stay valid. */
struct loop_place loop_enter(enum loop_cause cause, const char *what);
void loop_leave(struct loop_place place);

/* How long the turn had taken when the last name was given. */
int64_t loop_turn_us(void);

uint64_t loop_turn_number(void);

/* To be called before all other handles are made: libuv calls the oldest last, so that this one
 * sees the end of a turn. */
void loop_monitor_open(uv_loop_t *loop);
void loop_monitor_close(void);

/* Ends a turn at the given moment. For tests, and for the handles above. */
void loop_turn_ends(int64_t now_us);
