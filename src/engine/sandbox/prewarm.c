/* prewarm.c - of each shape the sandboxes that will be taken first have rehearsed what programs
 * do first: they answer sooner and weigh more (docs/benchmark.md). They do it when nobody has asked
 * for this long, so that a busy machine is not made busier. */
#include "engine/sandbox/prewarm.h"

#include "contract/agent.h"
#include "engine/observe/log.h"

enum { CALM_MS = 6 };

static void prime(struct shape *shape, struct pooled *row)
{
    static const struct {
        struct inside_execute head;
        char texts[2]; /* no folder, no file */
    } order = { .head = { .mode = INSIDE_MODE_PRIME } };
    struct iovec part = { (void *) (uintptr_t) &order, sizeof order.head + sizeof order.texts };
    row->is_primed = row->is_priming = true;
    shape->primed++;
    shape->priming = true;
    sandbox_send(row->sandbox,
                 &(struct inside_frame){ .kind = INSIDE_EXECUTE, .id = INSIDE_INTERPRETER }, &part,
                 1);
    sandbox_flush(row->sandbox);
}

static void be_calm(uv_timer_t *timer)
{
    struct pool *pool = timer->data;
    if (pool_rests_ms(pool) > 0) {
        (void) uv_timer_start(timer, be_calm, (uint64_t) pool_rests_ms(pool), 0);
        return;
    }
    for (size_t i = 0; i < SHAPES_MOST; i++) {
        struct shape *shape = &pool->shapes.list[i];
        struct pooled *row = NULL;
        if (shape->primed < shape_primed_target(shape) && shape->parked > 1 && !shape->priming)
            row = pool_first_to_go(pool, shape);
        if (row && !row->is_primed)
            prime(shape, row);
    }
}

void rehearse_when_calm(struct pool *pool, const struct shape *shape)
{
    if (shape->primed < shape_primed_target(shape) && !pool->is_closing)
        (void) uv_timer_start(&pool->calm, be_calm, CALM_MS, 0);
}

void rehearsal_open(struct pool *pool, uv_loop_t *loop)
{
    pool->calm.data = pool;
    (void) uv_timer_init(loop, &pool->calm);
    uv_unref((uv_handle_t *) &pool->calm);
}

bool rehearsal_hears(struct pooled *row, const struct inside_frame *frame)
{
    if (!row->is_priming)
        return false;
    if (frame->kind == INSIDE_DENIAL)
        return true; /* a library that tries what the filter refuses; it will again, and be told */
    if (frame->id != INSIDE_INTERPRETER ||
        (frame->kind != INSIDE_EXECUTED && frame->kind != INSIDE_DONE))
        return false;
    if (frame->kind == INSIDE_DONE) /* refused: it is as good as one that was never asked */
        log_event(LOG_WARNING, "pool.cannot_rehearse",
                  COUNT("slot", sandbox_name(row->sandbox)->slot));
    row->is_priming = false;
    row->shape->priming = false;
    sandbox_rests(row->sandbox);
    rehearse_when_calm(row->pool, row->shape);
    return true;
}
