/* run_states.c - see run_states.def. */
#include "model/run_states.h"

const struct run_state_row run_state_rows[RUN_STATES] = {
#define TO(name) (UINT32_C(1) << RUN_##name)
#define RUN_STATE(name, text, ms, next, cell_ms, cell_next) \
    [RUN_##name] = { text, { ms, cell_ms }, { next, cell_next } },
#include "model/run_states.def"
};
