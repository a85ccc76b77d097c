/* pool_internal.h - data shared by pool.c (leases, parking, slots), pool_build.c (builds a sandbox
 * until it is ready) and prewarm.c (prewarming). */
#pragma once

#include "engine/sandbox/pool.h"

/* A sandbox that is being built. */
struct pool_ticket {
    struct pool *pool;
    bool is_awaited;          /* counted in pool.awaited */
    bool has_queue;           /* of the lease that waits */
    uint32_t tenant;          /* that it is built for */
    struct pool_ticket *next; /* in pool.queued */
    pool_leased *told;        /* NULL: abandoned, or to be parked */
    void *context;
    struct pool_class *pool_class; /* to be parked in this shape; NULL: for a request */
    struct pool_class *wanted;     /* the shape for the request; NULL: none is kept */
    bool is_forked;
    uint32_t template;
    uint64_t memory_bytes, processes;
};

/* A sandbox after it was built. */
struct pooled {
    struct pool *pool;
    struct sandbox *sandbox;
    struct pool_ticket *pending_lease; /* until its interpreter reports that it is isolated */
    struct pool_class *pool_class;     /* the shape that it is parked in */
    uint32_t template, tenant;
    bool is_idle;
    bool is_prewarmed; /* or is being prewarmed */
    bool is_priming;   /* being prewarmed: not to be leased */
    struct pooled *next;
};

/* --- pool.c ----------------------------------------------------------------------------------- */

/* The oldest parked one that is prewarmed, or that is not; if there is none, the oldest of the
 * others. Of any shape, if `pool_class` is NULL. */
struct pooled *pool_idle(const struct pool *pool, const struct pool_class *pool_class,
                         bool prewarmed);

/* Checks soon whether more should be parked. */
void pool_refill_soon(struct pool *pool);

/* --- pool_build.c ----------------------------------------------------------------------------- */

/* Orders a sandbox from the spawner. Takes the ticket, and frees it on failure. */
int pool_build(struct pool *pool, const struct spawn_build *order,
               struct pool_ticket *pending_lease, error *err);

/* Ends every sandbox that is not ready: the pool closes. */
void pool_end_builds(struct pool *pool);

/* Parks none of this shape for a while, which grows with each failure. */
void pool_class_failed(struct pool_class *pool_class);

void pool_slot_freed(struct pool *pool);
void pool_leave_parking(struct pool *pool, struct pooled *row); /* it is leased, or ended */
void pool_unlist(struct pool *pool, struct pooled *row);

/* --- prewarm.c -------------------------------------------------------------------------------- */

void prewarm_open(struct pool *pool, uv_loop_t *loop);

/* Called when one of this shape was leased, or was parked. */
void prewarm_when_idle(struct pool *pool, const struct pool_class *pool_class);

/* Handles the frame if it belongs to prewarming. Returns whether it did. */
bool prewarm_on_frame(struct pooled *row, const struct agent_frame *frame);

/* --- processor_shares.c ----------------------------------------------------------------------- */

void processor_shares_open(struct pool *pool, uv_loop_t *loop, uint32_t processors);
void processor_shares_close(struct processor_shares *shares);
void processor_shares_look(struct pool *pool); /* while there are several tenants */

/* This tenant has a sandbox: for a minute there are several, if the last one was another. */
void processor_shares_leased(struct processor_shares *shares, uint32_t tenant);
