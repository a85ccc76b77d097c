/* run_states.h - the states of a run as plain data: their names, how long each may last, and which
 * may follow which (run_states.def). */
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

const char *run_state_name(enum run_state state);
bool run_state_may_follow(enum run_states_column column, enum run_state from, enum run_state to);
int64_t run_state_max_ms(enum run_states_column column, enum run_state state); /* 0: no bound */
