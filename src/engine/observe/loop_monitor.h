/* loop_monitor.h - what the turns of the event loop are spent on.
 *
 * Everything waits while one callback runs. Each kind says its name when it begins; a turn that
 * takes longer than 20 ms is counted under the name of what took longest in it (`processor` where
 * it was ready to run and others had the processors for most of the time), and told in the log,
 * with its route where it has one, once a second at most. All turns are in the histogram
 * `glovebox_loop_turn_seconds`. One reading of the clock a word. */
#pragma once

#include <stdint.h>
#include <uv.h>

enum loop_cause {
#define CAUSE(name, ...) CAUSE_##name,
#include "engine/observe/loop_causes.def"
    LOOP_CAUSES
};

const char *loop_cause_name(unsigned cause);

/* What was before, for loop_leave(). */
struct loop_place {
    enum loop_cause cause;
    const char *what;
};

/* From here on it is this. `what` is more of it, NULL if there is none; it must not go away. */
struct loop_place loop_enter(enum loop_cause cause, const char *what);
void loop_leave(struct loop_place place);

/* How long the turn has taken when the last word was said. */
int64_t loop_turn_us(void);

uint64_t loop_turn_number(void);

/* Before every other handle of the loop: the turn is over when all others have had theirs (libuv
 * calls who began last first). */
void loop_monitor_open(uv_loop_t *loop);
void loop_monitor_close(void);

/* The end of a turn, at a moment. For tests, and for the handles above. */
void loop_turn_ends(int64_t now_us);
