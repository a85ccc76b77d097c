/* run_kind.h - what differs between a run with a sandbox of its own (oneshot.c) and a cell, whose
 * sandbox is a session's (engine/session/cell.c). All else is the same code for both. */
#pragma once

#include "base/bytes.h"
#include "engine/sandbox/cgroup_counters.h"
#include "model/run_states.h"

struct run;

struct run_kind {
    const char *start; /* in results and receipts; NULL: how its sandbox came to be */
    enum run_states_column states;
    bool is_cell; /* it waits in its context, and its session is charged for the processor time */

    /* While it is running. */
    const struct group_directories *(*groups)(const struct run *run);
    void (*stop)(struct run *run);
    void (*look)(struct run *run);      /* run->look has passed */
    void (*timed_out)(struct run *run); /* the state has lasted too long */

    void (*cancel)(struct run *run);                         /* its caller wants no more of it */
    void (*leave_queue)(struct run *run);                    /* nothing of it will run */
    void (*write)(const struct run *run, struct bytes *out); /* fields of its own; NULL: none */
    void (*free)(struct run *run);                           /* NULL: it has nothing of its own */
};

extern const struct run_kind run_kind_oneshot;
