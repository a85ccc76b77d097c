/* processor_shares.c - while there are several tenants, looks four times a second at what each one
 * with a leased sandbox uses, and tells the spawner whose groups are to be scheduled as idle. */
#include "engine/sandbox/pool_internal.h"

#include <string.h>

enum { LOOK_MS = 250, LONG_US = 4 * LOOK_MS * 1000, SEVERAL_MS = 60000, OWN_PART = 4 };

bool tenant_use_add(struct tenant_use *use, int64_t now_us, uint64_t cpu_us, uint64_t own_milli)
{
    uint64_t used_us = cpu_us < use->cpu_us ? cpu_us : cpu_us - use->cpu_us; /* a new group */
    int64_t took_us = now_us - use->at_us;
    if (took_us > 0 && use->at_us > 0) {
        uint64_t milli = used_us * 1000 / (uint64_t) took_us;
        use->milli = took_us > LONG_US ? milli : (use->milli + milli) / 2;
    }
    use->at_us = now_us;
    use->cpu_us = cpu_us;
    return use->milli > (use->is_idle ? own_milli / 4 * 3 : own_milli);
}

static struct tenant_use *use_of(struct processor_shares *shares, uint32_t tenant)
{
    struct bytes *table = &shares->tenants;
    size_t wanted = (tenant + 1UL) * sizeof(struct tenant_use);
    size_t more = wanted > table->size ? wanted - table->size : 0;
    char *place = bytes_reserve(table, more);
    if (!place)
        return NULL;
    memset(place, 0, more);
    table->size += more;
    return (struct tenant_use *) (void *) table->data + tenant;
}

/* The group of a tenant may be another one since the last look, so idle ones are told again. */
static void look_at(struct pool *pool, const struct pooled *row, int64_t at_us)
{
    struct processor_shares *shares = &pool->shares;
    struct tenant_use *use = use_of(shares, row->tenant);
    if (!use || use->at_us == at_us)
        return;
    uint64_t cpu_us = counters_tenant_cpu_us(sandbox_groups(row->sandbox));
    bool exceeds = tenant_use_add(use, at_us, cpu_us, shares->own_milli);
    bool was_idle = use->is_idle;
    use->is_idle = exceeds && at_us / 1000 < shares->several_until_ms;
    if (use->is_idle || was_idle)
        spawner_schedule(pool->spawner, sandbox_name(row->sandbox), use->is_idle);
}

void processor_shares_look(struct pool *pool)
{
    int64_t at_us = now_us();
    bool is_leased = pool->awaited > 0; /* one that is being built for a request is leased soon */
    int64_t tenant = -1;                /* of the row before: mostly the same in many rows */
    for (const struct pooled *row = pool->all; row; row = row->next)
        if (row->tenant != tenant && !row->is_idle && !row->pending_lease) {
            is_leased = true;
            tenant = row->tenant;
            processor_shares_leased(&pool->shares, row->tenant);
            look_at(pool, row, at_us);
        }
    /* A tenant without others was told that it is not idle, in this look or before. */
    if (!is_leased || at_us / 1000 >= pool->shares.several_until_ms)
        (void) uv_timer_stop(&pool->shares.timer);
}

uint32_t processor_shares_idle(const struct processor_shares *shares)
{
    const struct tenant_use *uses = (const struct tenant_use *) (const void *) shares->tenants.data;
    uint32_t count = 0;
    for (size_t i = 0; i < shares->tenants.size / sizeof *uses; i++)
        count += uses[i].is_idle && now_us() - uses[i].at_us < LONG_US;
    return count;
}

static void on_timer(uv_timer_t *timer)
{
    processor_shares_look(timer->data);
}

/* It ended while it was scheduled as idle, and is back: the next look tells the spawner. */
static bool is_still_idle(const struct processor_shares *shares, uint32_t tenant)
{
    const struct tenant_use *uses = (const struct tenant_use *) (const void *) shares->tenants.data;
    return tenant < shares->tenants.size / sizeof *uses && uses[tenant].is_idle;
}

void processor_shares_leased(struct processor_shares *shares, uint32_t tenant)
{
    if (shares->last_tenant >= 0 && tenant != shares->last_tenant)
        shares->several_until_ms = now_ms() + SEVERAL_MS;
    shares->last_tenant = tenant;
    bool is_wanted = now_ms() < shares->several_until_ms || is_still_idle(shares, tenant);
    if (is_wanted && !uv_is_active((uv_handle_t *) &shares->timer))
        (void) uv_timer_start(&shares->timer, on_timer, 0, LOOK_MS);
}

void processor_shares_open(struct pool *pool, uv_loop_t *loop, uint32_t processors)
{
    struct processor_shares *shares = &pool->shares;
    shares->own_milli = UINT64_C(1000) * processors / OWN_PART;
    shares->last_tenant = -1;
    shares->timer.data = pool;
    (void) uv_timer_init(loop, &shares->timer);
    uv_unref((uv_handle_t *) &shares->timer);
}

void processor_shares_close(struct processor_shares *shares)
{
    uv_close((uv_handle_t *) &shares->timer, NULL);
    bytes_done(&shares->tenants);
}
