/* pool_test.c - the pool with a fake spawner and fake sandboxes: what a lease gets, which slots
 * are counted, and what happens when either of them fails. */
#include "base/test.h"

#include "engine/sandbox/pool.h"

#include "base/table.h"
#include "contract/agent.h"

#include <string.h>

enum { SLOTS = 4, BUILDS_MAX = 16 };

struct sandbox {
    struct spawn_slot name;
    struct sandbox_user user;
    bool is_broken, is_returned, is_closed;
};

/* The requests of the pool to the spawner, and the sandboxes that it has released. */
static struct {
    struct spawner_watcher watcher;
    struct {
        spawner_built *built; /* NULL: already answered */
        void *context;
    } builds[BUILDS_MAX];
    struct sandbox sandboxes[BUILDS_MAX];
    unsigned build_count, released_count, sandbox_count, closed_count;
    bool refuses_builds, refuses_sandboxes;
} fake;

int __wrap_spawner_open(struct spawner_link *link, uv_loop_t *loop, int socket,
                        const struct spawner_watcher *watcher, error *err);
int __wrap_spawner_build(struct spawner_link *link, struct spawn_build *build, spawner_built *built,
                         void *context, error *err);
void __wrap_spawner_release(struct spawner_link *link, const struct spawn_slot *name);
int __wrap_sandbox_open(struct spawner_link *spawner, const struct spawned *spawned,
                        struct sandbox **ret_sandbox, error *err);
void __wrap_sandbox_use(struct sandbox *sandbox, const struct sandbox_user *user);
bool __wrap_sandbox_is_broken(const struct sandbox *sandbox);
void __wrap_sandbox_ignore(struct sandbox *sandbox);
void __wrap_sandbox_close(struct sandbox *sandbox);
void __wrap_sandbox_kill(struct sandbox *sandbox, const error *cause);
const struct spawn_slot *__wrap_sandbox_name(const struct sandbox *sandbox);

int __wrap_spawner_open(struct spawner_link *link, uv_loop_t *loop, int socket,
                        const struct spawner_watcher *watcher, error *err)
{
    (void) loop;
    (void) socket;
    (void) err;
    link->is_open = true;
    fake.watcher = *watcher;
    return 0;
}

int __wrap_spawner_build(struct spawner_link *link, struct spawn_build *build, spawner_built *built,
                         void *context, error *err)
{
    (void) link;
    (void) build;
    if (fake.refuses_builds)
        return fail(err, ERR_UNAVAILABLE, "the spawner is gone");
    require(fake.build_count < BUILDS_MAX, "too many builds");
    fake.builds[fake.build_count].built = built;
    fake.builds[fake.build_count].context = context;
    fake.build_count++;
    return 0;
}

void __wrap_spawner_release(struct spawner_link *link, const struct spawn_slot *name)
{
    (void) link;
    (void) name;
    fake.released_count++;
}

int __wrap_sandbox_open(struct spawner_link *spawner, const struct spawned *spawned,
                        struct sandbox **ret_sandbox, error *err)
{
    (void) spawner;
    if (fake.refuses_sandboxes)
        return fail(err, ERR_SYSTEM, "no memory");
    *ret_sandbox = &fake.sandboxes[fake.sandbox_count++];
    (*ret_sandbox)->name = spawned->name;
    return 0;
}

void __wrap_sandbox_use(struct sandbox *sandbox, const struct sandbox_user *user)
{
    sandbox->user = *user;
}

bool __wrap_sandbox_is_broken(const struct sandbox *sandbox)
{
    return sandbox->is_broken;
}

void __wrap_sandbox_ignore(struct sandbox *sandbox)
{
    sandbox->is_returned = true;
}

void __wrap_sandbox_close(struct sandbox *sandbox)
{
    expect(!sandbox->is_closed, "slot %u is closed twice", sandbox->name.slot);
    sandbox->is_closed = true;
    fake.closed_count++;
}

void __wrap_sandbox_kill(struct sandbox *sandbox, const error *cause)
{
    sandbox->is_broken = true;
    sandbox->user.broken(sandbox->user.context, cause);
}

const struct spawn_slot *__wrap_sandbox_name(const struct sandbox *sandbox)
{
    return &sandbox->name;
}

static struct pool pool;
static struct spawner_link spawner;
static uv_loop_t loop;
static uv_timer_t bound; /* the pool's own timers do not keep the loop running */
static bool is_late;
static const struct limits small = { .memory = 1 << 20 }, large = { .memory = 2 << 20 };
static struct {
    struct sandbox *sandbox;
    unsigned count;
    bool has_failed;
} told;
static unsigned changes;

static void on_lease(void *context, struct sandbox *sandbox, enum run_start start,
                     const error *cause)
{
    (void) context;
    (void) start;
    expect(!sandbox == !!cause, "either a sandbox or a cause");
    told.sandbox = sandbox;
    told.has_failed = cause;
    told.count++;
}

static void on_change(void *context)
{
    (void) context;
    changes++;
}

static void on_late(uv_timer_t *timer)
{
    (void) timer;
    is_late = true;
}

static void open_pool(uint32_t parked)
{
    error err;
    memset(&fake, 0, sizeof fake);
    memset(&told, 0, sizeof told);
    spawner = (struct spawner_link){ .hello.slots = SLOTS };
    pool = (struct pool){ .changed = on_change, .pool_classes = { .min = parked, .max = parked } };
    require(uv_loop_init(&loop) == 0 && pool_open(&pool, &spawner, &loop, -1, &err) == 0, "a pool");
    pool.awaited_max = 2;
    is_late = false;
    (void) uv_timer_init(&loop, &bound);
    (void) uv_timer_start(&bound, on_late, 10000, 0);
    fake.watcher.hello(fake.watcher.context);
}

static int lease(const struct limits *limits, bool has_queue, struct pool_ticket **ret_ticket,
                 struct sandbox **ret_parked)
{
    error err;
    struct lease wanted = { .set = -1, .limits = limits, .has_queue = has_queue, .told = on_lease };
    return pool_lease(&pool, &wanted, ret_ticket, ret_parked, &err);
}

/* Answers the build with this number: a sandbox in slot N, of generation 1. */
static void stands(unsigned number)
{
    struct spawned spawned = { .name = { .slot = number, .generation = 1 }, .inside = -1 };
    spawner_built *built = fake.builds[number].built;
    memset(spawned.groups, 0xff, sizeof spawned.groups);
    fake.builds[number].built = NULL;
    built(fake.builds[number].context, &spawned, NULL);
}

static void fails(unsigned number)
{
    error cause;
    spawner_built *built = fake.builds[number].built;
    (void) fail(&cause, ERR_SYSTEM, "no namespace");
    fake.builds[number].built = NULL;
    built(fake.builds[number].context, NULL, &cause);
}

/* Ends everything that is under way. */
static void close_pool(void)
{
    for (unsigned i = 0; i < fake.build_count; i++)
        if (fake.builds[i].built)
            fails(i);
    for (unsigned i = 0; i < fake.sandbox_count; i++)
        if (!fake.sandboxes[i].is_returned && !fake.sandboxes[i].is_broken)
            pool_return(&pool, &fake.sandboxes[i]);
    pool_close(&pool);
    uv_close((uv_handle_t *) &bound, NULL);
    (void) uv_run(&loop, UV_RUN_DEFAULT);
    expect(uv_loop_close(&loop) == 0, "the pool leaves handles");
}

static void released(uint32_t slot, uint32_t leftovers)
{
    struct spawn_released report = { .slot = slot, .generation = 1, .leftovers = leftovers };
    fake.watcher.released(fake.watcher.context, &report);
}

/* Lets one of this shape be parked: a lease starts that, one turn of the loop later. */
static void park(const struct limits *limits)
{
    struct lease kept = { .set = -1, .limits = limits };
    unsigned before = fake.build_count;
    pool.pool_classes.min = pool.pool_classes.max = 1;
    pool_keep(&pool, &kept);
    while (fake.build_count == before && !is_late)
        (void) uv_run(&loop, UV_RUN_ONCE);
    require(!is_late, "nothing is built ahead");
    stands(before);
    require(pool.idle == 1 && pool.building == 0, "%u parked, %u on their way", pool.idle,
            pool.building);
}

TEST(a_lease_gets_the_sandbox_built_for_it)
{
    struct pool_ticket *ticket = NULL;
    struct sandbox *parked = NULL;
    open_pool(0);
    require(lease(&small, false, &ticket, &parked) == POOL_LEASED && ticket && !parked, "a ticket");
    expect(pool.in_use == 1 && pool.awaited == 1, "%u slots, %u awaited", pool.in_use,
           pool.awaited);
    stands(0);
    expect(told.count == 1 && told.sandbox == &fake.sandboxes[0], "it was told %u times",
           told.count);
    expect(pool.awaited == 0, "%u still awaited", pool.awaited);
    pool_return(&pool, told.sandbox);
    while (fake.closed_count == 0 && !is_late)
        (void) uv_run(&loop, UV_RUN_ONCE);
    expect(fake.closed_count == 1 && pool.draining == 1, "it goes once");
    released(0, 0);
    expect(pool.in_use == 0 && pool.draining == 0, "its slot is free");
    close_pool();
}

TEST(a_parked_sandbox_is_given_at_once_and_once)
{
    struct pool_ticket *ticket = NULL;
    struct sandbox *first = NULL;
    struct sandbox *second = NULL;
    open_pool(1);
    park(&small);
    require(lease(&small, false, &ticket, &first) == POOL_LEASED, "a lease");
    expect(first == &fake.sandboxes[0] && !ticket && pool.idle == 0, "it is the parked one");
    require(lease(&small, false, &ticket, &second) == POOL_LEASED, "another lease");
    expect(!second && ticket, "one sandbox is given twice");
    close_pool();
}

TEST(every_slot_is_counted_and_no_more_are_built)
{
    struct pool_ticket *ticket = NULL;
    struct sandbox *parked = NULL;
    open_pool(0);
    for (unsigned i = 0; i < SLOTS; i++)
        require(lease(&small, false, &ticket, &parked) == POOL_LEASED, "slot %u", i);
    expect(lease(&small, false, &ticket, &parked) == POOL_FULL, "there is no fifth slot");
    expect(fake.build_count == SLOTS, "%u were ordered", fake.build_count);
    close_pool();
}

TEST(a_parked_one_of_another_shape_makes_room)
{
    struct pool_ticket *ticket = NULL;
    struct sandbox *parked = NULL;
    open_pool(1);
    park(&small);
    pool.slots = 1;
    expect(lease(&large, false, &ticket, &parked) == POOL_FULL, "its slot is not free yet");
    expect(pool.idle == 0 && pool.draining == 1 && fake.closed_count == 1, "it goes at once");
    expect(lease(&large, false, &ticket, &parked) == POOL_FULL && fake.closed_count == 1,
           "only one");
    changes = 0;
    released(0, 0);
    expect(changes == 1, "the queue is told of the free slot");
    expect(lease(&large, false, &ticket, &parked) == POOL_LEASED && ticket, "then it is built");
    close_pool();
}

TEST(a_caller_with_a_queue_waits_there)
{
    const struct lease other = { .set = -1, .limits = &small, .has_queue = true, .tenant = 64 };
    struct pool_ticket *ticket = NULL;
    struct sandbox *parked = NULL;
    error err;
    open_pool(0);
    for (unsigned i = 0; i < pool.awaited_max; i++)
        require(lease(&small, true, &ticket, &parked) == POOL_LEASED, "build %u", i);
    expect(lease(&small, true, &ticket, &parked) == POOL_FULL, "more than processors can build");
    expect(lease(&small, false, &ticket, &parked) == POOL_LEASED, "without a queue it is built");
    expect(pool_lease(&pool, &other, &ticket, &parked, &err) == POOL_LEASED, "one of another");
    expect(pool_lease(&pool, &other, &ticket, &parked, &err) == POOL_FULL, "one only");
    for (unsigned i = 0; i < fake.build_count; i++)
        stands(i);
    expect(!pool.queued && pool.awaited_by_queue == 0, "awaited for ever");
    close_pool();
}

TEST(builds_for_callers_without_a_queue_keep_none_with_one_waiting)
{
    struct pool_ticket *ticket = NULL;
    struct sandbox *parked = NULL;
    open_pool(0);
    for (unsigned i = 0; i < pool.awaited_max; i++)
        require(lease(&small, false, &ticket, &parked) == POOL_LEASED, "build %u", i);
    expect(lease(&small, true, &ticket, &parked) == POOL_LEASED, "a run is built beside them");
    for (unsigned i = 0; i <= pool.awaited_max; i++)
        stands(i);
    expect(pool.awaited == 0 && pool.awaited_by_queue == 0, "%u awaited, %u by queues",
           pool.awaited, pool.awaited_by_queue);
    close_pool();
}

TEST(an_abandoned_sandbox_goes_unused)
{
    struct pool_ticket *ticket = NULL;
    struct sandbox *parked = NULL;
    open_pool(0);
    require(lease(&small, false, &ticket, &parked) == POOL_LEASED && ticket, "a ticket");
    pool_abandon(ticket);
    stands(0);
    expect(told.count == 0, "nobody waits for it");
    expect(fake.released_count == 1 && pool.draining == 1 && pool.awaited == 0, "it is given back");
    released(0, 0);
    expect(pool.in_use == 0, "%u slots", pool.in_use);
    close_pool();
}

TEST(a_failed_build_is_reported_and_frees_its_slot)
{
    struct pool_ticket *ticket = NULL;
    struct sandbox *parked = NULL;
    open_pool(0);
    require(lease(&small, false, &ticket, &parked) == POOL_LEASED && ticket, "a ticket");
    fails(0);
    expect(told.count == 1 && told.has_failed, "it was told %u times", told.count);
    expect(pool.in_use == 0 && pool.awaited == 0, "%u slots, %u awaited", pool.in_use,
           pool.awaited);
    fake.refuses_builds = true;
    expect(lease(&small, false, &ticket, &parked) == -1, "a spawner that is gone");
    expect(pool.in_use == 0 && pool.awaited == 0, "nothing is counted of it");
    close_pool();
}

TEST(a_sandbox_that_cannot_be_held_keeps_its_slot_until_it_is_released)
{
    struct pool_ticket *ticket = NULL;
    struct sandbox *parked = NULL;
    open_pool(0);
    fake.refuses_sandboxes = true;
    require(lease(&small, false, &ticket, &parked) == POOL_LEASED && ticket, "a ticket");
    stands(0);
    expect(told.has_failed && pool.in_use == 1 && pool.draining == 1, "%u slots, %u draining",
           pool.in_use, pool.draining);
    released(0, 0);
    expect(pool.in_use == 0 && pool.draining == 0, "then it is free");
    close_pool();
}

TEST(a_stale_generation_kills_nothing)
{
    open_pool(1);
    park(&small);
    fake.watcher.lost(fake.watcher.context, &(struct spawn_slot){ .slot = 0, .generation = 2 });
    expect(pool.idle == 1 && fake.closed_count == 0, "the sandbox of the generation before");
    fake.watcher.lost(fake.watcher.context, &(struct spawn_slot){ .slot = 0, .generation = 1 });
    expect(pool.idle == 0 && fake.closed_count == 1 && pool.draining == 1, "it has ended");
    close_pool();
}

TEST(a_stuck_slot_is_not_counted_until_it_is_back)
{
    struct pool_ticket *ticket = NULL;
    struct sandbox *parked = NULL;
    open_pool(0);
    require(lease(&small, false, &ticket, &parked) == POOL_LEASED, "a lease");
    stands(0);
    pool_return(&pool, told.sandbox);
    released(0, 3);
    expect(pool.stuck == 1 && pool.slots == SLOTS - 1 && pool.in_use == 0, "%u of %u slots",
           pool.in_use, pool.slots);
    released(0, SPAWN_IS_BACK);
    expect(pool.stuck == 0 && pool.slots == SLOTS, "%u slots", pool.slots);
    released(1, SPAWN_IS_BACK);
    expect(pool.stuck == 0 && pool.slots == SLOTS, "told twice: %u slots", pool.slots);
    for (unsigned i = 0; i < SLOTS; i++)
        released(i, 1);
    expect(pool.slots == 0, "all are stuck: %u slots", pool.slots);
    expect(lease(&small, false, &ticket, &parked) == POOL_FULL, "no more is asked for");
    close_pool();
}

TEST(without_a_spawner_nothing_is_left)
{
    open_pool(1);
    park(&small);
    spawner.is_open = false;
    fake.watcher.gone(fake.watcher.context);
    expect(pool.idle == 0 && !pool.all && pool.slots == 0 && fake.closed_count == 1,
           "%u parked, %u slots", pool.idle, pool.slots);
    close_pool();
}

TEST(a_sandbox_on_its_way_to_be_parked_does_not_outlive_the_pool)
{
    struct lease kept = { .set = 0, .limits = &small };
    open_pool(1);
    pool_keep(&pool, &kept);
    while (fake.build_count == 0 && !is_late)
        (void) uv_run(&loop, UV_RUN_ONCE);
    require(!is_late, "nothing is built ahead");
    stands(0); /* its interpreter has not said so yet */
    require(pool.building == 1 && pool.all, "%u on their way", pool.building);
    pool_close(&pool);
    expect(fake.closed_count == 1 && pool.building == 0 && !pool.all, "%u closed, %u on their way",
           fake.closed_count, pool.building);
    fake.sandboxes[0].is_returned = true;
    close_pool();
}

TESTS(CASE(a_lease_gets_the_sandbox_built_for_it), CASE(a_parked_sandbox_is_given_at_once_and_once),
      CASE(every_slot_is_counted_and_no_more_are_built),
      CASE(a_parked_one_of_another_shape_makes_room), CASE(a_caller_with_a_queue_waits_there),
      CASE(builds_for_callers_without_a_queue_keep_none_with_one_waiting),
      CASE(an_abandoned_sandbox_goes_unused), CASE(a_failed_build_is_reported_and_frees_its_slot),
      CASE(a_sandbox_that_cannot_be_held_keeps_its_slot_until_it_is_released),
      CASE(a_stale_generation_kills_nothing), CASE(a_stuck_slot_is_not_counted_until_it_is_back),
      CASE(a_sandbox_on_its_way_to_be_parked_does_not_outlive_the_pool),
      CASE(without_a_spawner_nothing_is_left))
