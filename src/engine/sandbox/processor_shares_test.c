/* processor_shares_test.c - which tenants are scheduled as idle, and when they no longer are. */
#include "base/test.h"

#include "engine/sandbox/pool_internal.h"

#include "base/table.h"

#include <string.h>

enum { OWN_MILLI = 500, QUARTER_US = 250000, ROWS = 4 };

static int64_t clock_us = 1000000;
static uint64_t counted_us[ROWS]; /* by tenant */
static int said[ROWS];            /* -1: nothing since the last look, else is_idle */
static unsigned looks;
static uv_loop_t loop;
static struct pooled rows[ROWS];
static struct spawn_slot names[ROWS];
static struct group_directories groups[ROWS];

int64_t __wrap_now_us(void);
int64_t __wrap_now_ms(void);
const struct group_directories *__wrap_sandbox_groups(const struct sandbox *sandbox);
const struct spawn_slot *__wrap_sandbox_name(const struct sandbox *sandbox);
uint64_t __wrap_counters_tenant_cpu_us(const struct group_directories *directories);
void __wrap_spawner_schedule(struct spawner_link *link, const struct spawn_slot *name,
                             bool is_idle);

int64_t __wrap_now_us(void)
{
    return clock_us;
}

int64_t __wrap_now_ms(void)
{
    return clock_us / 1000;
}

/* A sandbox is the address of its row. */
static size_t row_of(const struct sandbox *sandbox)
{
    return (size_t) ((const struct pooled *) (const void *) sandbox - rows);
}

const struct group_directories *__wrap_sandbox_groups(const struct sandbox *sandbox)
{
    return &groups[row_of(sandbox)];
}

const struct spawn_slot *__wrap_sandbox_name(const struct sandbox *sandbox)
{
    return &names[row_of(sandbox)];
}

uint64_t __wrap_counters_tenant_cpu_us(const struct group_directories *directories)
{
    looks++;
    uint32_t tenant = rows[directories - groups].tenant;
    return tenant < ROWS ? counted_us[tenant] : 0;
}

void __wrap_spawner_schedule(struct spawner_link *link, const struct spawn_slot *name, bool is_idle)
{
    (void) link;
    said[rows[name - names].tenant] = is_idle;
}

static void begin(struct pool *pool)
{
    *pool = (struct pool){ 0 };
    require(uv_loop_init(&loop) == 0, "a loop");
    processor_shares_open(pool, &loop, 2);
    expect(pool->shares.own_milli == OWN_MILLI, "a quarter of two processors");
    memset(rows, 0, sizeof rows);
    memset(counted_us, 0, sizeof counted_us);
    for (size_t i = 0; i < ROWS; i++) {
        rows[i].sandbox = (struct sandbox *) (void *) &rows[i];
        rows[i].tenant = (uint32_t) i;
    }
}

static void end(struct pool *pool)
{
    processor_shares_close(&pool->shares);
    (void) uv_run(&loop, UV_RUN_DEFAULT);
    expect(uv_loop_close(&loop) == 0 && !pool->shares.tenants.data, "nothing is left");
}

static void lease(struct pool *pool, size_t row)
{
    rows[row].next = pool->all;
    pool->all = &rows[row];
}

/* A quarter of a second in which tenant 1 uses this much. */
static void pass(struct pool *pool, uint64_t milli)
{
    clock_us += QUARTER_US;
    counted_us[1] += milli * QUARTER_US / 1000;
    for_each(one, said)
        *one = -1;
    looks = 0;
    processor_shares_look(pool);
}

TEST(one_that_uses_more_than_its_own_is_idle_beside_others)
{
    struct pool pool;
    begin(&pool);
    lease(&pool, 1);
    lease(&pool, 2);
    pass(&pool, 2000);
    expect(said[1] == -1 && said[2] == -1, "nothing is known before the first quarter");
    pass(&pool, 900);
    expect(said[1] == -1, "450 of late");
    pass(&pool, 900);
    expect(said[1] == true && said[2] == -1, "675 of late");
    pass(&pool, 900);
    expect(said[1] == true, "told again: its group may be another");
    expect(processor_shares_idle(&pool.shares) == 1, "one is idle");
    pass(&pool, 0);
    expect(said[1] == true, "393 of late: it is idle down to 375");
    pass(&pool, 0);
    expect(said[1] == false, "196 of late");
    expect(processor_shares_idle(&pool.shares) == 0, "none is idle");
    pass(&pool, 0);
    expect(said[1] == -1, "told once");
    pass(&pool, 700);
    expect(said[1] == -1, "398 of late: it was not idle");
    end(&pool);
}

TEST(one_that_is_alone_never_is)
{
    struct pool pool;
    begin(&pool);
    lease(&pool, 1);
    pass(&pool, 2000);
    pass(&pool, 2000);
    pass(&pool, 2000);
    expect(said[1] == -1, "alone");
    processor_shares_leased(&pool.shares, 3);
    pass(&pool, 2000);
    expect(said[1] == true, "another had a sandbox");
    expect(processor_shares_idle(&pool.shares) == 1, "one is idle");
    clock_us += 60000000;
    expect(processor_shares_idle(&pool.shares) == 0, "nobody has looked for a minute");
    pass(&pool, UINT64_C(2000) * 241);
    expect(said[1] == false, "a minute later");
    end(&pool);
}

TEST(only_leased_sandboxes_are_looked_at_and_each_tenant_once)
{
    struct pool pool;
    begin(&pool);
    struct pool_ticket ticket = { 0 };
    rows[2].is_idle = true;
    rows[3].pending_lease = &ticket;
    rows[0].tenant = 1;
    for (size_t i = 0; i < ROWS; i++)
        lease(&pool, i);
    pass(&pool, 0);
    expect(looks == 1, "%u looks", looks);
    end(&pool);
}

TEST(what_a_tenant_uses)
{
    struct tenant_use use = { 0 };
    expect(!tenant_use_add(&use, 5000000, 900000000, OWN_MILLI) && use.milli == 0, "the first");
    expect(!tenant_use_add(&use, 5250000, 900250000, OWN_MILLI) && use.milli == 500, "its own");
    expect(tenant_use_add(&use, 5500000, 900501000, OWN_MILLI) && use.milli == 752, "more");
    expect(!tenant_use_add(&use, 5750000, 60000, OWN_MILLI) && use.milli == 496,
           "the group was made again: %d", (int) use.milli);
    use.is_idle = true;
    expect(!tenant_use_add(&use, 8750000, 60000 + 900000, OWN_MILLI) && use.milli == 300,
           "after three seconds what was before does not count: %d", (int) use.milli);
}

/* Numbers of tenants need not come in order. */
TEST(the_timer_of_a_pool_goes_while_several_tenants_have_sandboxes)
{
    struct pool pool;
    begin(&pool);
    uv_timer_t *timer = &pool.shares.timer;
    expect(!uv_is_active((uv_handle_t *) timer), "nothing is leased");
    processor_shares_leased(&pool.shares, 70);
    expect(!uv_is_active((uv_handle_t *) timer), "one that is alone is not looked at");
    processor_shares_leased(&pool.shares, 3);
    expect(uv_is_active((uv_handle_t *) timer) && uv_timer_get_due_in(timer) == 0 &&
               uv_timer_get_repeat(timer) == 250,
           "at once, then four times a second");
    rows[0].tenant = 70;
    rows[1].tenant = 3;
    lease(&pool, 0);
    lease(&pool, 1);
    clock_us += QUARTER_US;
    timer->timer_cb(timer);
    const struct tenant_use *uses = (const void *) pool.shares.tenants.data;
    expect(pool.shares.tenants.size == 71 * sizeof *uses && uses[70].at_us == clock_us &&
               uses[3].at_us == clock_us && uses[4].at_us == 0,
           "each tenant has a row");
    expect(uv_is_active((uv_handle_t *) timer), "two are leased");
    rows[0].is_idle = true;
    timer->timer_cb(timer);
    expect(uv_is_active((uv_handle_t *) timer), "one is leased");
    rows[1].is_idle = true;
    pool.awaited = 1;
    timer->timer_cb(timer);
    expect(uv_is_active((uv_handle_t *) timer), "one is being built for a request");
    pool.awaited = 0;
    timer->timer_cb(timer);
    expect(!uv_is_active((uv_handle_t *) timer), "none is leased");

    rows[1].is_idle = false;
    processor_shares_leased(&pool.shares, 70);
    expect(uv_is_active((uv_handle_t *) timer), "two had one within a minute");
    clock_us += 30000000;
    timer->timer_cb(timer);
    expect(uv_is_active((uv_handle_t *) timer), "half a minute later");
    clock_us += 60000000;
    timer->timer_cb(timer);
    expect(!uv_is_active((uv_handle_t *) timer), "one had none within a minute");
    processor_shares_leased(&pool.shares, 3);
    expect(!uv_is_active((uv_handle_t *) timer), "it is alone");
    struct tenant_use *changed = (void *) pool.shares.tenants.data;
    changed[3].is_idle = true;
    processor_shares_leased(&pool.shares, 3);
    expect(uv_is_active((uv_handle_t *) timer), "its group may still be idle");
    clock_us += QUARTER_US;
    timer->timer_cb(timer);
    expect(said[3] == false && !uv_is_active((uv_handle_t *) timer), "it is as usual again");
    end(&pool);
}

TESTS(CASE(one_that_uses_more_than_its_own_is_idle_beside_others), CASE(one_that_is_alone_never_is),
      CASE(only_leased_sandboxes_are_looked_at_and_each_tenant_once), CASE(what_a_tenant_uses),
      CASE(the_timer_of_a_pool_goes_while_several_tenants_have_sandboxes))
