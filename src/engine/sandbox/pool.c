/* pool.c - builds sandboxes, parks some ahead of time, and counts slots until the spawner says that
 * they are free again. Refilling waits until the answer is on its way, and never builds many at
 * once. */
#include "engine/sandbox/pool.h"

#include "base/clock.h"
#include "engine/observe/log.h"
#include "engine/sandbox/prewarm.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* After a run has ended, or while a long one goes on. */
enum { REFILL_SOON_MS = 1, REFILL_LATER_MS = 20 };

enum { COUNT_EVERY_MS = 1000, BUILDING_MOST = 2, REST_MS = 1000, REST_MOST_MS = 30000 };

/* What is built for runs that wait, at once, for each processor: more would make each of them
 * slower and none sooner, and the queue, which is fair and bounded, would never see them. */
enum { AWAITED_PER_PROCESSOR = 2 };

struct pool_ticket {
    struct pool *pool;
    bool is_awaited;   /* counted as such */
    pool_leased *told; /* NULL: abandoned, or to be parked */
    void *context;
    struct shape *shape;  /* that it is to be parked for; NULL: somebody waits */
    struct shape *wanted; /* what somebody waits for; NULL: no shape is kept of it */
    bool is_forked;
};

static void free_slot(struct pool *pool)
{
    if (pool->in_use > 0)
        pool->in_use--;
    pool->changed(pool->context);
}

static void refill_soon(struct pool *pool);

/* --- one sandbox --------------------------------------------------------------------------------
 */

static void leave_parking(struct pool *pool, struct pooled *row)
{
    row->shape->parked--;
    row->shape->primed -= row->is_primed;
    row->shape->priming = row->shape->priming && !row->is_priming;
    pool->parked--;
    row->is_parked = row->is_primed = row->is_priming = false;
}

static void unlist(struct pool *pool, struct pooled *row)
{
    for (struct pooled **at = &pool->all; *at; at = &(*at)->next)
        if (*at == row) {
            *at = row->next;
            break;
        }
    if (row->is_parked)
        leave_parking(pool, row);
}

static struct pooled *find_row(const struct pool *pool, const struct sandbox *sandbox)
{
    for (struct pooled *row = pool->all; row; row = row->next)
        if (row->sandbox == sandbox)
            return row;
    return NULL;
}

static void shape_failed(struct shape *shape)
{
    uint64_t rest = REST_MS << (shape->failures < 5 ? shape->failures : 5);
    shape->failures++;
    shape->rests_until_ms = (uint64_t) now_ms() + (rest < REST_MOST_MS ? rest : REST_MOST_MS);
}

static void ticket_done(struct pool_ticket *ticket)
{
    struct pool *pool = ticket->pool;
    bool was_awaited = ticket->is_awaited;
    pool->awaited -= was_awaited;
    free(ticket);
    if (was_awaited)
        pool->changed(pool->context);
}

static void ticket_fails(struct pool_ticket *ticket, const error *cause)
{
    struct pool *pool = ticket->pool;
    pool_leased *told = ticket->told;
    void *user = ticket->context;
    if (ticket->shape) {
        ticket->shape->building--;
        pool->building--;
        shape_failed(ticket->shape);
        if (!pool->is_closing)
            log_event(LOG_WARNING, "pool.cannot_park", TEXT("cause", cause->text));
    }
    if (told)
        told(user, NULL, POOL_BUILT, cause);
    ticket_done(ticket);
}

/* The sandbox is all that it will be before it is used: it goes to whoever waits, or is parked. */
static void is_ready(struct pooled *row)
{
    struct pool *pool = row->pool;
    struct pool_ticket *ticket = row->ticket;
    row->ticket = NULL;
    if (ticket->wanted)
        ticket->wanted->has_stood = true;
    if (ticket->shape) {
        ticket->shape->building--;
        pool->building--;
        ticket->shape->failures = 0;
        row->shape = ticket->shape;
        row->is_parked = true;
        row->shape->parked++;
        pool->parked++;
        free(ticket);
        refill_soon(pool);
        rehearse_when_calm(pool, row->shape);
        pool->changed(pool->context); /* a queue may wait for it */
        return;
    }
    pool_leased *told = ticket->told;
    void *user = ticket->context;
    if (told)
        told(user, row->sandbox, POOL_BUILT, NULL);
    else
        pool_return(pool, row->sandbox);
    ticket_done(ticket);
}

/* A sandbox that is not leased says that its interpreter stands, or that it does not, and that it
 * has rehearsed. */
static int on_frame(void *context, const struct inside_frame *frame, const unsigned char *payload,
                    error *err)
{
    struct pooled *row = context;
    if (rehearsal_hears(row, frame))
        return 0;
    if (row->ticket && frame->kind == INSIDE_STARTED && frame->id == INSIDE_INTERPRETER) {
        is_ready(context);
        return 0;
    }
    if (row->ticket && frame->kind == INSIDE_DONE && frame->id == INSIDE_INTERPRETER)
        return fail(err, ERR_UNAVAILABLE, "the interpreter's walls do not stand: %.*s",
                    (int) (frame->size - sizeof(struct inside_done)),
                    (const char *) payload + sizeof(struct inside_done));
    return fail(err, ERR_PROTOCOL, "a parked sandbox sent a frame of kind %u", frame->kind);
}

static void on_broken(void *context, const error *cause)
{
    struct pooled *row = context;
    struct pool *pool = row->pool;
    struct sandbox *sandbox = row->sandbox;
    struct pool_ticket *ticket = row->ticket;
    if (!pool->is_closing) /* then it ends with its spawner, and nothing has broken */
        log_event(LOG_WARNING, "pool.sandbox_broke", TEXT("cause", cause->text));
    unlist(pool, row);
    free(row);
    pool->leaving++;
    sandbox_close(sandbox);
    if (ticket)
        ticket_fails(ticket, cause);
    refill_soon(pool);
}

/* A sandbox for which nobody waits any more, or that cannot be held. */
static void discard(struct pool *pool, const struct spawned *spawned)
{
    (void) close(spawned->inside);
    for (int i = 0; i < GROUPS; i++)
        if (spawned->groups[i] >= 0)
            (void) close(spawned->groups[i]);
    pool->leaving++;
    spawner_release(pool->spawner, &spawned->name);
}

static void on_built(void *context, const struct spawned *spawned, const error *cause)
{
    struct pool_ticket *ticket = context;
    struct pool *pool = ticket->pool;
    error err;
    if (!spawned) {
        ticket_fails(ticket, cause);
        free_slot(pool);
        return;
    }
    if ((!ticket->told && !ticket->shape) || pool->is_closing) {
        discard(pool, spawned);
        if (ticket->shape) {
            ticket->shape->building--;
            pool->building--;
        }
        ticket_done(ticket);
        return;
    }
    struct pooled *row = calloc(1, sizeof *row);
    if (!row) {
        discard(pool, spawned);
        (void) fail(&err, ERR_SYSTEM, "no memory for a sandbox");
        ticket_fails(ticket, &err);
        return;
    }
    if (sandbox_open(pool->spawner, spawned, &row->sandbox, &err) < 0) {
        pool->leaving++;
        free(row);
        ticket_fails(ticket, &err);
        return;
    }
    row->pool = pool;
    row->ticket = ticket;
    row->next = pool->all;
    pool->all = row;
    struct sandbox_user user = { .context = row, .frame = on_frame, .broken = on_broken };
    sandbox_use(row->sandbox, &user);
    if (!ticket->is_forked)
        is_ready(row);
}

static int build(struct pool *pool, const struct spawn_build *order, struct pool_ticket *ticket,
                 error *err)
{
    struct spawn_build asked = *order;
    ticket->pool = pool;
    ticket->is_forked = order->start == SPAWN_FORKED;
    if (spawner_build(pool->spawner, &asked, on_built, ticket, err) < 0) {
        free(ticket);
        return -1;
    }
    pool->in_use++;
    return 0;
}

/* --- parking ------------------------------------------------------------------------------------
 */

/* The first of a shape may need an interpreter that is yet to be warmed, which takes a processor a
 * while: not while somebody waits, above all not after a restart, when many do. */
static struct shape *neediest(struct pool *pool, uint64_t now)
{
    struct shape *found = NULL;
    uint32_t most_missing = 0;
    for (size_t i = 0; i < SHAPES_MOST; i++) {
        struct shape *shape = &pool->shapes.list[i];
        uint32_t target = shape_target(&pool->shapes, shape, now);
        uint32_t have = shape->parked + shape->building;
        bool may_park = shape->has_stood || pool->awaited == 0;
        if (may_park && target > have && target - have > most_missing) {
            most_missing = target - have;
            found = shape;
        }
    }
    return found;
}

/* Half of the slots are never taken by sandboxes that only wait. */
static bool may_park(const struct pool *pool)
{
    return !pool->is_closing && pool->building < BUILDING_MOST && pool->in_use < pool->slots &&
           pool->parked + pool->building < pool->slots / 2;
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
        struct shape *shape = neediest(pool, now);
        if (!shape)
            return;
        struct pool_ticket *ticket = calloc(1, sizeof *ticket);
        error err;
        if (!ticket)
            return;
        ticket->shape = ticket->wanted = shape;
        if (build(pool, &shape->build, ticket, &err) < 0) {
            shape_failed(shape);
            return;
        }
        shape->building++;
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

static void refill_soon(struct pool *pool)
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

/* The primed one, or else the oldest. */
static struct pooled *next_to_take(const struct pool *pool, const struct shape *shape)
{
    struct pooled *found = NULL; /* rows are added in front */
    for (struct pooled *row = pool->all; row; row = row->next)
        if (row->is_parked && !row->is_priming && row->shape == shape &&
            (!found || row->is_primed || !found->is_primed))
            found = row;
    return found;
}

struct pooled *pool_first_to_go(const struct pool *pool, const struct shape *shape)
{
    struct pooled *found = NULL;
    for (struct pooled *row = pool->all; row; row = row->next)
        if (row->is_parked && (!shape || row->shape == shape) &&
            (!found || !row->is_primed || found->is_primed))
            found = row;
    return found;
}

/* What is parked beyond need goes, one a second. */
static void count(uv_timer_t *timer)
{
    struct pool *pool = timer->data;
    uint64_t now = (uint64_t) now_ms();
    shapes_count(&pool->shapes);
    for (size_t i = 0; i < SHAPES_MOST; i++) {
        struct shape *shape = &pool->shapes.list[i];
        const struct pooled *row = NULL;
        if (shape->parked > shape_target(&pool->shapes, shape, now))
            row = pool_first_to_go(pool, shape);
        if (row)
            pool_return(pool, row->sandbox);
    }
    refill_soon(pool);
}

/* --- the spawner --------------------------------------------------------------------------------
 */

static void count_slots(struct pool *pool)
{
    uint32_t all = pool->spawner->hello.slots;
    pool->slots = all > pool->stuck ? all - pool->stuck : 1;
}

static void on_hello(void *context)
{
    struct pool *pool = context;
    const struct spawn_hello *hello = &pool->spawner->hello;
    pool->stuck = 0;
    count_slots(pool);
    log_event(LOG_NOTICE, "spawner.ready", COUNT("slots", hello->slots),
              COUNT("templates", hello->templates), COUNT("swept", hello->swept));
    refill_soon(pool);
    pool->changed(pool->context);
}

static void on_released(void *context, const struct spawn_released *released)
{
    struct pool *pool = context;
    if (released->leftovers == SPAWN_IS_BACK) {
        log_event(LOG_NOTICE, "sandbox.left_at_last", COUNT("slot", released->slot));
        pool->stuck -= pool->stuck > 0;
        count_slots(pool);
        pool->changed(pool->context);
        return;
    }
    if (released->leftovers > 0) {
        log_event(LOG_ERROR, "sandbox.left_something", COUNT("slot", released->slot),
                  COUNT("leftovers", released->leftovers));
        pool->stuck++; /* the spawner does not use this one until it is empty */
        count_slots(pool);
    }
    if (pool->leaving > 0)
        pool->leaving--;
    free_slot(pool);
}

static void on_lost(void *context, const struct spawn_slot *name)
{
    const struct pool *pool = context;
    error cause;
    (void) fail(&cause, ERR_SYSTEM, "glovebox-init ended unasked");
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
                "glovebox-spawner is gone and starts again by itself; ask again in a second");
    for (struct pooled *first; (first = pool->all) != NULL;) {
        sandbox_kill(first->sandbox, &cause); /* its user returns it when it hears this */
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
    pool->awaited_most = AWAITED_PER_PROCESSOR * (processors > 0 ? (uint32_t) processors : 1);
    pool->spawner = spawner;
    pool->refill.data = pool->count.data = pool;
    (void) uv_timer_init(loop, &pool->refill);
    (void) uv_timer_init(loop, &pool->count);
    uv_unref((uv_handle_t *) &pool->refill);
    uv_unref((uv_handle_t *) &pool->count);
    rehearsal_open(pool, loop);
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
    uv_close((uv_handle_t *) &pool->calm, NULL);
    for (const struct pooled *row; (row = pool_first_to_go(pool, NULL)) != NULL;)
        pool_return(pool, row->sandbox);
    close_returned(pool);
}

/* --- leases -------------------------------------------------------------------------------------
 */

/* Bytes that are compared: what is not set is zero, padding included. */
static void order_of(const struct lease *lease, struct spawn_build *order)
{
    const struct limits *limits = lease->limits;
    memset(order, 0, sizeof *order);
    order->template = lease->template;
    order->network = lease->network;
    order->way = lease->way;
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
    struct shape *shape = shapes_find(&pool->shapes, &order, (uint64_t) now_ms());
    if (shape)
        shape->is_kept = true;
    refill_soon(pool);
}

static struct sandbox *take_parked(struct pool *pool, const struct shape *shape)
{
    struct pooled *row = shape && shape->parked > 0 ? next_to_take(pool, shape) : NULL;
    if (!row)
        return NULL;
    leave_parking(pool, row);
    return row->sandbox;
}

/* One that only waits, for another shape, goes: its slot is free in a moment. */
static void make_room(struct pool *pool)
{
    const struct pooled *other = pool->leaving == 0 ? pool_first_to_go(pool, NULL) : NULL;
    if (other)
        pool_return(pool, other->sandbox);
}

int pool_lease(struct pool *pool, const struct lease *lease, struct pool_ticket **ret_ticket,
               struct sandbox **ret_parked, error *err)
{
    struct spawn_build order;
    order_of(lease, &order);
    uint64_t now = (uint64_t) now_ms();
    struct shape *shape = pool->shapes.most > 0 ? shapes_find(&pool->shapes, &order, now) : NULL;
    *ret_parked = take_parked(pool, shape);
    if (!*ret_parked && pool->in_use >= pool->slots && pool->spawner->is_open) {
        make_room(pool);
        return POOL_FULL;
    }
    if (!*ret_parked && lease->has_queue && pool->awaited >= pool->awaited_most)
        return POOL_FULL;
    if (shape) {
        shape_leased(shape, now);
        rehearse_when_calm(pool, shape);
        refill_later(pool);
    }
    if (*ret_parked)
        return POOL_LEASED;
    struct pool_ticket *ticket = calloc(1, sizeof *ticket);
    if (!ticket)
        return fail(err, ERR_SYSTEM, "no memory for a lease");
    ticket->told = lease->told;
    ticket->context = lease->context;
    ticket->wanted = shape;
    if (build(pool, &order, ticket, err) < 0)
        return -1;
    ticket->is_awaited = true;
    pool->awaited++;
    *ret_ticket = ticket;
    return POOL_LEASED;
}

void pool_abandon(struct pool_ticket *ticket)
{
    ticket->told = NULL;
}

void pool_return(struct pool *pool, struct sandbox *sandbox)
{
    struct pooled *row = find_row(pool, sandbox);
    assert(row);
    unlist(pool, row);
    sandbox_ignore(sandbox);
    row->next = pool->returned;
    pool->returned = row;
    pool->leaving++;
    if (pool->is_closing || sandbox_is_broken(sandbox) || pool->in_use >= pool->slots)
        close_returned(pool); /* something in it may still run, or somebody may wait for its slot */
    else
        refill_soon(pool);
}
