/* prewarm.h - some of the parked sandboxes have rehearsed what programs do first. Part of the
 * pool: shared by its two files only. */
#pragma once

#include "engine/sandbox/pool.h"

/* A sandbox from the moment it was built. */
struct pooled {
    struct pool *pool;
    struct sandbox *sandbox;
    struct pool_ticket *pending_lease; /* until its interpreter has said that its walls stand */
    struct pool_class *pool_class;     /* that it is parked for */
    bool is_idle;
    bool is_prewarmed; /* or will be: */
    bool is_priming;   /* not to be taken now */
    struct pooled *next;
};

/* The oldest; one that is primed only if there is no other. Of any shape, if none is named. */
struct pooled *pool_first_to_go(const struct pool *pool, const struct pool_class *pool_class);

void prewarm_open(struct pool *pool, uv_loop_t *loop);

/* Something of this shape was asked for, or has parked. */
void rehearse_when_calm(struct pool *pool, const struct pool_class *pool_class);

/* Was this frame about a rehearsal? Then it has been dealt with. */
bool prewarm_on_frame(struct pooled *row, const struct agent_frame *frame);
