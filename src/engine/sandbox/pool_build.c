/* pool_build.c - one sandbox of the pool, from its order until it is ready, lost or discarded. */
#include "engine/sandbox/pool_internal.h"

#include "base/clock.h"
#include "base/list.h"
#include "engine/observe/log.h"

#include <stdlib.h>
#include <unistd.h>

/* How long none of a shape is parked after a failed build; doubled with each failure. */
enum { REST_MS = 1000, REST_MAX_MS = 30000 };

void pool_slot_freed(struct pool *pool)
{
    if (pool->in_use > 0)
        pool->in_use--;
    pool->changed(pool->context);
}

void pool_leave_parking(struct pool *pool, struct pooled *row)
{
    row->pool_class->idle--;
    row->pool_class->prewarmed -= row->is_prewarmed;
    row->pool_class->priming = row->pool_class->priming && !row->is_priming;
    pool->idle--;
    row->is_idle = row->is_prewarmed = row->is_priming = false;
}

void pool_unlist(struct pool *pool, struct pooled *row)
{
    (void) list_remove(pool->all, row, next);
    if (row->is_idle)
        pool_leave_parking(pool, row);
}

void pool_class_failed(struct pool_class *pool_class)
{
    uint64_t rest = REST_MS << (pool_class->failures < 5 ? pool_class->failures : 5);
    pool_class->failures++;
    pool_class->rests_until_ms = (uint64_t) now_ms() + (rest < REST_MAX_MS ? rest : REST_MAX_MS);
}

static void pending_lease_done(struct pool_ticket *pending_lease)
{
    struct pool *pool = pending_lease->pool;
    bool was_awaited = pending_lease->is_awaited;
    pool->awaited -= was_awaited;
    pool->awaited_by_queue -= was_awaited && pending_lease->has_queue;
    (void) list_remove(pool->queued, pending_lease, next);
    free(pending_lease);
    if (was_awaited)
        pool->changed(pool->context);
}

static void pending_lease_fails(struct pool_ticket *pending_lease, const error *cause)
{
    struct pool *pool = pending_lease->pool;
    pool_leased *told = pending_lease->told;
    void *user = pending_lease->context;
    if (pending_lease->pool_class) {
        pending_lease->pool_class->building--;
        pool->building--;
        pool_class_failed(pending_lease->pool_class);
        if (!pool->is_closing)
            log_event(POOL_BUILD_FAILED, TEXT("cause", cause->text));
    }
    if (told)
        told(user, NULL, START_BUILT, cause);
    pending_lease_done(pending_lease);
}

/* The sandbox is complete: it is leased to the first waiter, or parked. */
static void is_ready(struct pooled *row)
{
    struct pool *pool = row->pool;
    struct pool_ticket *pending_lease = row->pending_lease;
    row->pending_lease = NULL;
    if (pending_lease->wanted)
        pending_lease->wanted->has_stood = true;
    if (pending_lease->pool_class) {
        pending_lease->pool_class->building--;
        pool->building--;
        pending_lease->pool_class->failures = 0;
        row->pool_class = pending_lease->pool_class;
        row->is_idle = true;
        row->pool_class->idle++;
        pool->idle++;
        free(pending_lease);
        pool_refill_soon(pool);
        prewarm_when_idle(pool, row->pool_class);
        pool->changed(pool->context); /* a queue may wait for a sandbox */
        return;
    }
    pool_leased *told = pending_lease->told;
    void *user = pending_lease->context;
    if (told)
        told(user, row->sandbox, START_BUILT, NULL);
    else
        pool_return(pool, row->sandbox);
    pending_lease_done(pending_lease);
}

/* Frames of a sandbox that is not leased: its interpreter is ready, or has failed, or was
 * prewarmed. */
static int on_frame(void *context, const struct agent_frame *frame, const unsigned char *payload,
                    error *err)
{
    struct pooled *row = context;
    if (prewarm_on_frame(row, frame))
        return 0;
    if (row->pending_lease && frame->kind == AGENT_STARTED && frame->id == AGENT_INTERPRETER) {
        is_ready(context);
        return 0;
    }
    if (row->pending_lease && frame->kind == AGENT_DONE && frame->id == AGENT_INTERPRETER)
        return fail(err, ERR_UNAVAILABLE, "the interpreter could not be isolated: %.*s",
                    (int) (frame->size - sizeof(struct agent_done)),
                    (const char *) payload + sizeof(struct agent_done));
    return fail(err, ERR_PROTOCOL, "a parked sandbox sent a frame of kind %u", frame->kind);
}

static void on_broken(void *context, const error *cause)
{
    struct pooled *row = context;
    struct pool *pool = row->pool;
    struct sandbox *sandbox = row->sandbox;
    struct pool_ticket *pending_lease = row->pending_lease;
    if (!pool->is_closing) /* else it ends with the spawner, which is no failure */
        log_event(POOL_SANDBOX_FAILED, TEXT("cause", cause->text));
    pool_unlist(pool, row);
    free(row);
    pool->draining++;
    sandbox_close(sandbox);
    if (pending_lease)
        pending_lease_fails(pending_lease, cause);
    pool_refill_soon(pool);
}

/* A sandbox that is being built to be parked would keep the loop from ending. */
void pool_end_builds(struct pool *pool)
{
    error cause;
    (void) fail(&cause, ERR_UNAVAILABLE, "gloveboxd is ending; try again when it is back");
    for (struct pooled *row = pool->all, *next; row; row = next) {
        next = row->next;
        if (row->pending_lease)
            on_broken(row, &cause);
    }
}

/* Ends a sandbox that no request waits for any more, or for which there is no memory. */
static void discard(struct pool *pool, const struct spawned *spawned)
{
    (void) close(spawned->inside);
    for (int i = 0; i < GROUPS; i++)
        if (spawned->groups[i] >= 0)
            (void) close(spawned->groups[i]);
    pool->draining++;
    spawner_release(pool->spawner, &spawned->name);
}

static void on_built(void *context, const struct spawned *spawned, const error *cause)
{
    struct pool_ticket *pending_lease = context;
    struct pool *pool = pending_lease->pool;
    error err;
    if (!spawned) {
        pending_lease_fails(pending_lease, cause);
        pool_slot_freed(pool);
        return;
    }
    if ((!pending_lease->told && !pending_lease->pool_class) || pool->is_closing) {
        discard(pool, spawned);
        if (pending_lease->pool_class) {
            pending_lease->pool_class->building--;
            pool->building--;
        }
        pending_lease_done(pending_lease);
        return;
    }
    struct pooled *row = calloc(1, sizeof *row);
    if (!row) {
        discard(pool, spawned);
        (void) fail(&err, ERR_SYSTEM, "no memory for a sandbox");
        pending_lease_fails(pending_lease, &err);
        return;
    }
    if (sandbox_open(pool->spawner, spawned, &row->sandbox, &err) < 0) {
        discard(pool, spawned);
        free(row);
        pending_lease_fails(pending_lease, &err);
        return;
    }
    row->pool = pool;
    row->template = pending_lease->template;
    row->tenant = pending_lease->tenant;
    row->pending_lease = pending_lease;
    row->next = pool->all;
    pool->all = row;
    struct sandbox_user user = { .context = row, .frame = on_frame, .broken = on_broken };
    sandbox_use(row->sandbox, &user);
    sandbox_bound(row->sandbox, pending_lease->memory_bytes, pending_lease->processes);
    if (!pending_lease->is_forked)
        is_ready(row);
}

int pool_build(struct pool *pool, const struct spawn_build *order,
               struct pool_ticket *pending_lease, error *err)
{
    struct spawn_build asked = *order;
    pending_lease->pool = pool;
    pending_lease->is_forked = order->start == SPAWN_FORKED;
    pending_lease->template = order->template;
    pending_lease->tenant = order->tenant;
    pending_lease->memory_bytes = order->memory_bytes;
    pending_lease->processes = order->processes;
    if (spawner_build(pool->spawner, &asked, on_built, pending_lease, err) < 0) {
        free(pending_lease);
        return -1;
    }
    pool->in_use++;
    pool_tenant_builds(&pool->pool_classes, order->tenant);
    return 0;
}
