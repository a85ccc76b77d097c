/* run_states.h - the states of a run, from run_states.def: names, durations, transitions. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum run_state {
#define RUN_STATE(name, text, ms, next, cell_ms, cell_next) RUN_##name,
#include "model/run_states.def"
#undef RUN_STATE
    RUN_STATES
};

/* A run with a sandbox of its own, or a cell of a session. */
enum run_states_column { STATES_OF_ONESHOT, STATES_OF_CELL, STATES_COLUMNS };

extern const struct run_state_row {
    const char *name;
    int64_t max_ms[STATES_COLUMNS];
    uint32_t next[STATES_COLUMNS]; /* bits of run_state */
} run_state_rows[RUN_STATES];

static inline const char *run_state_name(enum run_state state)
{
    return run_state_rows[state].name;
}

static inline bool run_state_may_follow(enum run_states_column column, enum run_state from,
                                        enum run_state to)
{
    return run_state_rows[from].next[column] >> to & 1;
}

/* The longest duration; 0: not limited. */
static inline int64_t run_state_max_ms(enum run_states_column column, enum run_state state)
{
    return run_state_rows[state].max_ms[column];
}
