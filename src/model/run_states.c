/* run_states.c - see run_states.def. */
#include "model/run_states.h"

static const struct state_row {
    const char *name;
    int64_t max_ms[STATES_COLUMNS];
    uint32_t next[STATES_COLUMNS]; /* bits of run_state */
} states[RUN_STATES] = {
#define TO(name) (UINT32_C(1) << RUN_##name)
#define RUN_STATE(name, text, ms, next, cell_ms, cell_next) \
    [RUN_##name] = { text, { ms, cell_ms }, { next, cell_next } },
#include "model/run_states.def"
};

const char *run_state_name(enum run_state state)
{
    return states[state].name;
}

bool run_state_may_follow(enum run_states_column column, enum run_state from, enum run_state to)
{
    return states[from].next[column] >> to & 1;
}

int64_t run_state_max_ms(enum run_states_column column, enum run_state state)
{
    return states[state].max_ms[column];
}
