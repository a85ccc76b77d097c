/* prewarm.h - some of the parked sandboxes have rehearsed what programs do first. Part of the
 * pool: shared by its two files only. */
#pragma once

#include "engine/sandbox/pool.h"

/* A sandbox from the moment it was built. */
struct pooled {
    struct pool *pool;
    struct sandbox *sandbox;
    struct pool_ticket *ticket; /* until its interpreter has said that its walls stand */
    struct shape *shape;        /* that it is parked for */
    bool is_parked;
    bool is_primed;  /* or will be: */
    bool is_priming; /* not to be taken now */
    struct pooled *next;
};

/* The oldest; one that is primed only if there is no other. Of any shape, if none is named. */
struct pooled *pool_first_to_go(const struct pool *pool, const struct shape *shape);

void rehearsal_open(struct pool *pool, uv_loop_t *loop);

/* Something of this shape was asked for, or has parked. */
void rehearse_when_calm(struct pool *pool, const struct shape *shape);

/* Was this frame about a rehearsal? Then it has been dealt with. */
bool rehearsal_hears(struct pooled *row, const struct inside_frame *frame);
