/* pool.c - leases sandboxes, parks some in advance, and counts slots until the spawner reports them
 * free. Refilling begins when the answer has been sent, and builds only a few at a time. */
#include "engine/sandbox/pool_internal.h"

#include "base/clock.h"
#include "base/table.h"
#include "engine/observe/log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* After a run has ended; while a long one goes on. */
enum { REFILL_SOON_MS = 1, REFILL_LATER_MS = 20 };

enum { COUNT_EVERY_MS = 1000, BUILDING_MAX = 2 };

/* How many sandboxes per processor are built at once for waiting runs: more would make each slower
 * and none earlier, and the runs would bypass the queue, which is fair and bounded. */
enum { AWAITED_PER_PROCESSOR = 2 };

/* --- parking ---------------------------------------------------------------------------------- */

/* Parked sandboxes use at most half of the slots. */
static bool may_park(const struct pool *pool)
{
    return !pool->is_closing && pool->building < BUILDING_MAX && pool->in_use < pool->slots &&
           pool->idle + pool->building < pool->slots / 2;
}

static void close_returned(struct pool *pool)
{
    while (pool->returned) {
        struct pooled *row = pool->returned;
        pool->returned = row->next;
        sandbox_close(row->sandbox);
        free(row);
    }
}

static void refill(uv_timer_t *timer)
{
    struct pool *pool = timer->data;
    pool->refill_is_soon = false;
    close_returned(pool);
    if (pool_rests_ms(pool) > 0) {
        (void) uv_timer_start(&pool->refill, refill, (uint64_t) pool_rests_ms(pool), 0);
        return;
    }
    uint64_t now = (uint64_t) now_ms();
    while (may_park(pool)) {
        struct pool_class *pool_class =
            pool_classes_neediest(&pool->pool_classes, pool->awaited == 0, now);
        if (!pool_class)
            return;
        struct pool_ticket *pending_lease = calloc(1, sizeof *pending_lease);
        error err;
        if (!pending_lease)
            return;
        pending_lease->pool_class = pending_lease->wanted = pool_class;
        if (pool_build(pool, &pool_class->build, pending_lease, &err) < 0) {
            pool_class_failed(pool_class);
            return;
        }
        pool_class_builds(&pool->pool_classes, pool_class);
        pool->building++;
    }
}

int64_t pool_rests_ms(const struct pool *pool)
{
    return pool->rests_until.at_ms ? deadline_left_ms(pool->rests_until) : 0;
}

void pool_rest(struct pool *pool)
{
    if (!deadline_has_passed(pool->may_rest))
        return;
    pool->rests_until = deadline_in(POOL_REST_MS);
    pool->may_rest = deadline_in(POOL_AWAKE_MS);
}

void pool_wake(struct pool *pool)
{
    pool->rests_until = (deadline){ 0 };
}

void pool_refill_soon(struct pool *pool)
{
    if (pool->is_closing || pool->refill_is_soon)
        return;
    pool->refill_is_soon = true;
    (void) uv_timer_start(&pool->refill, refill, REFILL_SOON_MS, 0);
}

static void refill_later(struct pool *pool)
{
    if (!pool->is_closing && !uv_is_active((uv_handle_t *) &pool->refill))
        (void) uv_timer_start(&pool->refill, refill, REFILL_LATER_MS, 0);
}

/* Rows are added at the front, so that leased ones need not be skipped. */
struct pooled *pool_idle(const struct pool *pool, const struct pool_class *pool_class,
                         bool prewarmed)
{
    struct pooled *found = NULL;
    uint32_t left = pool_class ? pool_class->idle : pool->idle;
    for (struct pooled *row = pool->all; row && left > 0; row = row->next) {
        if (!row->is_idle || (pool_class && row->pool_class != pool_class))
            continue;
        left--;
        if (!(prewarmed && row->is_priming) &&
            (!found || row->is_prewarmed == prewarmed || found->is_prewarmed != prewarmed))
            found = row;
    }
    return found;
}

/* Ends parked sandboxes beyond the target, one per second. */
static void count(uv_timer_t *timer)
{
    struct pool *pool = timer->data;
    uint64_t now = (uint64_t) now_ms();
    pool_classes_count(&pool->pool_classes);
    for (size_t i = 0; i < POOL_CLASSES_MAX; i++) {
        struct pool_class *pool_class = &pool->pool_classes.list[i];
        const struct pooled *row = NULL;
        if (pool_class->idle > pool_class_target(&pool->pool_classes, pool_class, now))
            row = pool_idle(pool, pool_class, false);
        if (row)
            pool_return(pool, row->sandbox);
    }
    pool_refill_soon(pool);
}

/* --- the spawner ------------------------------------------------------------------------------ */

static void count_slots(struct pool *pool)
{
    uint32_t all = pool->spawner->hello.slots;
    pool->slots = all > pool->stuck ? all - pool->stuck : 0;
}

static void on_hello(void *context)
{
    struct pool *pool = context;
    const struct spawn_hello *hello = &pool->spawner->hello;
    pool->stuck = 0;
    count_slots(pool);
    log_event(SPAWNER_READY, COUNT("slots", hello->slots), COUNT("swept", hello->swept));
    pool_refill_soon(pool);
    pool->changed(pool->context);
}

static void on_released(void *context, const struct spawn_released *released)
{
    struct pool *pool = context;
    if (released->leftovers == SPAWN_IS_BACK) {
        log_event(SANDBOX_REMOVED_LATE, COUNT("slot", released->slot));
        pool->stuck -= pool->stuck > 0;
        count_slots(pool);
        pool->changed(pool->context);
        return;
    }
    if (released->leftovers > 0) {
        log_event(SANDBOX_LEFTOVERS, COUNT("slot", released->slot),
                  COUNT("leftovers", released->leftovers));
        pool->stuck++; /* the spawner does not use this slot until it is empty */
        count_slots(pool);
    }
    if (pool->draining > 0)
        pool->draining--;
    pool_slot_freed(pool);
}

static void on_lost(void *context, const struct spawn_slot *name)
{
    const struct pool *pool = context;
    error cause;
    (void) fail(&cause, ERR_SYSTEM, "glovebox-init exited unexpectedly");
    for (const struct pooled *row = pool->all; row; row = row->next) {
        const struct spawn_slot *its = sandbox_name(row->sandbox);
        if (its->slot == name->slot && its->generation == name->generation) {
            sandbox_kill(row->sandbox, &cause);
            return;
        }
    }
}

static void on_gone(void *context)
{
    struct pool *pool = context;
    pool->slots = pool->stuck = 0;
    error cause;
    (void) fail(&cause, ERR_UNAVAILABLE,
                "glovebox-spawner has ended and is being restarted; try again in a second");
    for (struct pooled *first; (first = pool->all) != NULL;) {
        sandbox_kill(first->sandbox, &cause); /* its user returns it when it is notified */
        if (pool->all == first)
            break;
    }
    pool->changed(pool->context);
}

int pool_open(struct pool *pool, struct spawner_link *spawner, uv_loop_t *loop, int socket,
              error *err)
{
    struct spawner_watcher watcher = { .context = pool,
                                       .hello = on_hello,
                                       .released = on_released,
                                       .lost = on_lost,
                                       .gone = on_gone };
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t count_of_processors = processors > 0 ? (uint32_t) processors : 1;
    pool->awaited_max = AWAITED_PER_PROCESSOR * count_of_processors;
    pool->spawner = spawner;
    pool->refill.data = pool->count.data = pool;
    (void) uv_timer_init(loop, &pool->refill);
    (void) uv_timer_init(loop, &pool->count);
    uv_unref((uv_handle_t *) &pool->refill);
    uv_unref((uv_handle_t *) &pool->count);
    prewarm_open(pool, loop);
    processor_shares_open(pool, loop, count_of_processors);
    (void) uv_timer_start(&pool->count, count, COUNT_EVERY_MS, COUNT_EVERY_MS);
    return spawner_open(spawner, loop, socket, &watcher, err);
}

void pool_close(struct pool *pool)
{
    if (pool->is_closing)
        return;
    pool->is_closing = true;
    uv_close((uv_handle_t *) &pool->refill, NULL);
    uv_close((uv_handle_t *) &pool->count, NULL);
    uv_close((uv_handle_t *) &pool->idle_timer, NULL);
    processor_shares_close(&pool->shares);
    for (const struct pooled *row; (row = pool_idle(pool, NULL, false)) != NULL;)
        pool_return(pool, row->sandbox);
    close_returned(pool);
    pool_end_builds(pool);
}

/* --- leases ----------------------------------------------------------------------------------- */

/* Orders are compared byte by byte, so all of it is zeroed first, padding included. */
static void order_of(const struct lease *lease, struct spawn_build *order)
{
    const struct limits *limits = lease->limits;
    memset(order, 0, sizeof *order);
    order->template = lease->template;
    order->network = lease->network;
    order->route = lease->route;
    order->start = lease->set >= 0 ? SPAWN_FORKED : SPAWN_EMPTY;
    order->zygote = lease->set >= 0 ? (uint32_t) lease->set : 0;
    order->tenant = lease->tenant;
    order->open_files = (uint32_t) limits->open_files;
    order->memory_bytes = limits->memory;
    order->processes = limits->processes;
    order->disk_bytes = limits->disk;
    order->inodes = limits->inodes;
    order->cpus_milli = limits->cpus;
    order->disk_read_rate = limits->disk_read_rate;
    order->disk_write_rate = limits->disk_write_rate;
}

void pool_keep(struct pool *pool, const struct lease *lease)
{
    struct spawn_build order;
    order_of(lease, &order);
    struct pool_class *pool_class =
        pool_classes_find(&pool->pool_classes, &order, (uint64_t) now_ms());
    if (pool_class)
        pool_class->is_kept = true;
    pool_refill_soon(pool);
}

uint32_t pool_forget(struct pool *pool, uint32_t template)
{
    uint32_t left = 0;
    for_each(pool_class, pool->pool_classes.list) {
        if (!pool_class->is_used || pool_class->build.template != template)
            continue;
        pool_class->is_kept = false;
        pool_class->last_ms = 0;
        for (const struct pooled *row; (row = pool_idle(pool, pool_class, false)) != NULL;)
            pool_return(pool, row->sandbox);
        left += pool_class->building;
        pool_class->is_used = pool_class->building > 0;
    }
    for (const struct pooled *row = pool->all; row; row = row->next)
        left += row->template == template;
    return left;
}

static struct sandbox *take_parked(struct pool *pool, const struct pool_class *pool_class)
{
    struct pooled *row = pool_class ? pool_idle(pool, pool_class, true) : NULL;
    if (!row)
        return NULL;
    pool_leave_parking(pool, row);
    return row->sandbox;
}

/* Ends a parked sandbox of another shape: its slot is free in a moment. */
static void make_room(struct pool *pool)
{
    const struct pooled *other = pool->draining == 0 ? pool_idle(pool, NULL, false) : NULL;
    if (other)
        pool_return(pool, other->sandbox);
}

/* Builds for a tenant with many runs must not delay the first run of another tenant. */
static bool may_await(const struct pool *pool, uint32_t tenant)
{
    const struct pool_ticket *other = pool->queued;
    while (other && other->tenant != tenant)
        other = other->next;
    return pool->awaited_by_queue < pool->awaited_max * (other ? 1 : 2);
}

int pool_lease(struct pool *pool, const struct lease *lease, struct pool_ticket **ret_ticket,
               struct sandbox **ret_parked, error *err)
{
    if (lease->template >= SPAWN_TEMPLATES_MAX)
        return fail(err, ERR_UNAVAILABLE,
                    "the template was removed or rebuilt while this request waited; send it again");
    struct spawn_build order;
    order_of(lease, &order);
    uint64_t now = (uint64_t) now_ms();
    struct pool_class *pool_class =
        pool->pool_classes.max > 0 ? pool_classes_find(&pool->pool_classes, &order, now) : NULL;
    processor_shares_leased(&pool->shares, lease->tenant);
    *ret_parked = take_parked(pool, pool_class);
    if (!*ret_parked && pool->in_use >= pool->slots && pool->spawner->is_open) {
        make_room(pool);
        return POOL_FULL;
    }
    if (!*ret_parked && lease->has_queue && !may_await(pool, lease->tenant))
        return POOL_FULL;
    if (pool_class) {
        pool_class_leased(pool_class, now);
        prewarm_when_idle(pool, pool_class);
        refill_later(pool);
    }
    if (*ret_parked)
        return POOL_LEASED;
    struct pool_ticket *pending_lease = calloc(1, sizeof *pending_lease);
    if (!pending_lease)
        return fail(err, ERR_SYSTEM, "no memory for a lease");
    pending_lease->told = lease->told;
    pending_lease->context = lease->context;
    pending_lease->wanted = pool_class;
    if (pool_build(pool, &order, pending_lease, err) < 0)
        return -1;
    pending_lease->is_awaited = true;
    pending_lease->has_queue = lease->has_queue;
    pending_lease->next = pool->queued;
    if (lease->has_queue)
        pool->queued = pending_lease;
    pool->awaited++;
    pool->awaited_by_queue += lease->has_queue;
    *ret_ticket = pending_lease;
    return POOL_LEASED;
}

void pool_abandon(struct pool_ticket *pending_lease)
{
    pending_lease->told = NULL;
}

static struct pooled *find_row(const struct pool *pool, const struct sandbox *sandbox)
{
    for (struct pooled *row = pool->all; row; row = row->next)
        if (row->sandbox == sandbox)
            return row;
    return NULL;
}

void pool_return(struct pool *pool, struct sandbox *sandbox)
{
    struct pooled *row = find_row(pool, sandbox);
    assert(row);
    pool_unlist(pool, row);
    sandbox_ignore(sandbox);
    row->next = pool->returned;
    pool->returned = row;
    pool->draining++;
    if (pool->is_closing || sandbox_is_broken(sandbox) || pool->in_use >= pool->slots)
        close_returned(pool); /* code in it may still run, or a request waits for its slot */
    else
        pool_refill_soon(pool);
}
