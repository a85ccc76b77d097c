/* prewarm.c - prewarming: the parked sandboxes of a shape that will be leased first run typical
 * first steps of programs in advance. They answer faster and use more memory (docs/benchmark.md).
 * It is done when no request has come for IDLE_MS, so that it does not slow a busy machine. */
#include "engine/sandbox/pool_internal.h"

#include "contract/agent.h"
#include "engine/observe/log.h"

enum { IDLE_MS = 6 };

static void prime(struct pool_class *pool_class, struct pooled *row)
{
    static const struct {
        struct agent_execute head;
        char texts[2]; /* no working folder, no file name */
    } order = { .head = { .mode = AGENT_MODE_PRIME } };
    struct iovec part = { (void *) (uintptr_t) &order, sizeof order.head + sizeof order.texts };
    row->is_prewarmed = row->is_priming = true;
    pool_class->prewarmed++;
    pool_class->priming = true;
    sandbox_send(row->sandbox,
                 &(struct agent_frame){ .kind = AGENT_EXECUTE, .id = AGENT_INTERPRETER }, &part, 1);
    sandbox_flush(row->sandbox);
}

static void on_idle(uv_timer_t *timer)
{
    struct pool *pool = timer->data;
    if (pool_rests_ms(pool) > 0) {
        (void) uv_timer_start(timer, on_idle, (uint64_t) pool_rests_ms(pool), 0);
        return;
    }
    for (size_t i = 0; i < POOL_CLASSES_MAX; i++) {
        struct pool_class *pool_class = &pool->pool_classes.list[i];
        struct pooled *row = NULL;
        if (pool_class->prewarmed < pool_class_prewarm_target(pool_class) && pool_class->idle > 1 &&
            !pool_class->priming)
            row = pool_idle(pool, pool_class, false);
        if (row && !row->is_prewarmed)
            prime(pool_class, row);
    }
}

void prewarm_when_idle(struct pool *pool, const struct pool_class *pool_class)
{
    if (pool_class->prewarmed < pool_class_prewarm_target(pool_class) && !pool->is_closing)
        (void) uv_timer_start(&pool->idle_timer, on_idle, IDLE_MS, 0);
}

void prewarm_open(struct pool *pool, uv_loop_t *loop)
{
    pool->idle_timer.data = pool;
    (void) uv_timer_init(loop, &pool->idle_timer);
    uv_unref((uv_handle_t *) &pool->idle_timer);
}

bool prewarm_on_frame(struct pooled *row, const struct agent_frame *frame)
{
    if (!row->is_priming)
        return false;
    if (frame->kind == AGENT_DENIAL)
        return true; /* by a library; the same denial in a run is reported */
    if (frame->id != AGENT_INTERPRETER ||
        (frame->kind != AGENT_EXECUTED && frame->kind != AGENT_DONE))
        return false;
    if (frame->kind == AGENT_DONE) /* refused: it is like one that was not prewarmed */
        log_event(POOL_PREWARM_FAILED, COUNT("slot", sandbox_name(row->sandbox)->slot));
    row->is_priming = false;
    row->pool_class->priming = false;
    sandbox_rests(row->sandbox);
    prewarm_when_idle(row->pool, row->pool_class);
    return true;
}
