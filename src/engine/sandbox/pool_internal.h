/* pool_internal.h - the rows of the pool, for pool.c (leases, parking, slots), pool_build.c (one
 * sandbox until it is ready) and prewarm.c (prewarming). */
#pragma once

#include "engine/sandbox/pool.h"

/* Of a sandbox that is being built. */
struct pool_ticket {
    struct pool *pool;
    bool is_awaited;          /* counted as such */
    bool has_queue;           /* as the lease that is awaited, */
    uint32_t tenant;          /* and of whom */
    struct pool_ticket *next; /* of a queue */
    pool_leased *told;        /* NULL: abandoned, or to be parked */
    void *context;
    struct pool_class *pool_class; /* that it is to be parked for; NULL: a request waits */
    struct pool_class *wanted;     /* what a request waits for; NULL: no shape is kept of it */
    bool is_forked;
    uint32_t template;
    uint64_t memory_bytes, processes;
};

/* A sandbox from the moment it was built. */
struct pooled {
    struct pool *pool;
    struct sandbox *sandbox;
    struct pool_ticket *pending_lease; /* until its interpreter has said that its walls stand */
    struct pool_class *pool_class;     /* that it is parked for */
    uint32_t template;
    bool is_idle;
    bool is_prewarmed; /* or will be: */
    bool is_priming;   /* not to be taken now */
    struct pooled *next;
};

/* --- pool.c ----------------------------------------------------------------------------------- */

/* The oldest that is prewarmed, or that is not; of the others, where there is none. Of any shape,
 * if none is named. */
struct pooled *pool_idle(const struct pool *pool, const struct pool_class *pool_class,
                         bool prewarmed);

/* Looks in a moment whether sandboxes are to be parked. */
void pool_refill_soon(struct pool *pool);

/* --- pool_build.c ----------------------------------------------------------------------------- */

/* Orders a sandbox of the spawner. Takes the ticket, and frees it where this fails. */
int pool_build(struct pool *pool, const struct spawn_build *order,
               struct pool_ticket *pending_lease, error *err);

/* Gives back every sandbox that stands and is not ready: the pool closes. */
void pool_end_builds(struct pool *pool);

/* Nothing is parked of it for a while, longer each time. */
void pool_class_failed(struct pool_class *pool_class);

void pool_slot_freed(struct pool *pool);
void pool_leave_parking(struct pool *pool, struct pooled *row); /* it is taken, or goes */
void pool_unlist(struct pool *pool, struct pooled *row);

/* --- prewarm.c -------------------------------------------------------------------------------- */

void prewarm_open(struct pool *pool, uv_loop_t *loop);

/* Something of this shape was asked for, or has parked. */
void prewarm_when_idle(struct pool *pool, const struct pool_class *pool_class);

/* Was this frame about prewarming? Then it has been dealt with. */
bool prewarm_on_frame(struct pooled *row, const struct agent_frame *frame);
