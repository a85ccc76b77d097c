/* run_kind.h - the differences between a run with a sandbox of its own (oneshot.c) and a cell,
 * which uses a session's sandbox (engine/session/cell.c). All other code is the same for both. */
#pragma once

#include "base/bytes.h"
#include "engine/sandbox/cgroup_counters.h"
#include "model/run_states.h"

struct run;

struct run_kind {
    const char *start; /* `usage.start` of results; NULL: as its sandbox was made */
    enum run_states_column states;
    bool is_cell; /* waits in its context; its session is charged for processor time */

    /* While it is running. */
    const struct group_directories *(*groups)(const struct run *run);
    void (*stop)(struct run *run);
    void (*look)(struct run *run);      /* at run->look */
    void (*timed_out)(struct run *run); /* at run->state_ends */

    void (*cancel)(struct run *run);                         /* its caller cancels it */
    void (*leave_queue)(struct run *run);                    /* it ends without having run */
    void (*write)(const struct run *run, struct bytes *out); /* its own fields; NULL: none */
    void (*free)(struct run *run);                           /* its own data; NULL: none */
};

extern const struct run_kind run_kind_oneshot;
