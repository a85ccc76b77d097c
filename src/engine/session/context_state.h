/* context_state.h - a context without its interpreter, for branches and checkpoints. */
#pragma once

#include "engine/session/contexts.h"

/* The data of a context outside its interpreter. */
struct kept_context {
    char *id, *language, *folder;
    struct variables variables;
    uint32_t cells;
    bool is_fresh;
};
int kept_context_take(struct kept_context *kept, const struct context *context, error *err);
int kept_context_copy(struct kept_context *kept, const struct kept_context *from, error *err);
void kept_context_done(struct kept_context *kept);

/* Adds a context with this interpreter to the session. */
int context_adopt(struct session *session, const struct kept_context *kept, uint32_t interpreter,
                  error *err);
