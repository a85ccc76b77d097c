/* pool_classes.c - a running mean of the demand decides how many sandboxes are parked; it reads no
 * clock. */
#include "engine/sandbox/pool_classes.h"

#include "base/table.h"

#include <string.h>

enum { FORGOTTEN_MS = 60000, LEASES_PER_PARKED = 20, BUILT = 16 /* in sixteenths */ };
enum { PREWARMED_LIGHT = 4, PREWARMED_RICH = 1 };

struct pool_class *pool_classes_find(struct pool_classes *pool_classes,
                                     const struct spawn_build *build, uint64_t now_ms)
{
    struct pool_class *free = NULL;
    for_each(pool_class, pool_classes->list) {
        if (pool_class->is_used && memcmp(&pool_class->build, build, sizeof *build) == 0)
            return pool_class;
        if (pool_class->is_kept || pool_class->idle > 0 || pool_class->building > 0)
            continue;
        if (!free ||
            (free->is_used && (!pool_class->is_used || pool_class->last_ms < free->last_ms)))
            free = pool_class;
    }
    if (free)
        *free = (struct pool_class){ .build = *build, .is_used = true, .last_ms = now_ms };
    return free;
}

void pool_class_leased(struct pool_class *pool_class, uint64_t now_ms)
{
    pool_class->recent++;
    pool_class->last_ms = now_ms;
}

/* Of a tenant that has none: the row of the one for whom fewest were built. */
static struct pool_tenant *row_of(struct pool_classes *pool_classes, uint32_t tenant)
{
    struct pool_tenant *fewest = pool_classes->tenants;
    for_each(row, pool_classes->tenants) {
        if (row->tenant == tenant)
            return row;
        fewest = row->built < fewest->built ? row : fewest;
    }
    return fewest;
}

void pool_classes_count(struct pool_classes *pool_classes)
{
    for_each(pool_class, pool_classes->list) {
        double now = pool_class->recent;
        pool_class->rate = now > pool_class->rate ? now : pool_class->rate * 0.8 + now * 0.2;
        pool_class->recent = 0;
    }
    for_each(row, pool_classes->tenants)
        row->built /= 2;
}

uint32_t pool_class_prewarm_target(const struct pool_class *pool_class)
{
    if (!pool_class->is_used || pool_class->build.start != SPAWN_FORKED)
        return 0;
    return pool_class->build.zygote == 0 ? PREWARMED_LIGHT : PREWARMED_RICH;
}

uint32_t pool_class_target(const struct pool_classes *pool_classes,
                           const struct pool_class *pool_class, uint64_t now_ms)
{
    bool is_forgotten = now_ms - pool_class->last_ms > FORGOTTEN_MS;
    if (!pool_class->is_used || pool_classes->max == 0 || now_ms < pool_class->rests_until_ms)
        return 0;
    if (is_forgotten)
        return pool_class->is_kept ? pool_classes->min : 0;
    uint32_t wanted = pool_classes->min + (uint32_t) (pool_class->rate / LEASES_PER_PARKED);
    return wanted < pool_classes->max ? wanted : pool_classes->max;
}

struct lack {
    uint32_t built; /* recent builds of its tenant */
    uint64_t missing, target, turn;
};

static bool is_before(const struct lack *lack, const struct lack *other)
{
    uint64_t share = lack->missing * other->target, other_share = other->missing * lack->target;
    if (lack->built != other->built)
        return lack->built < other->built;
    return share > other_share || (share == other_share && lack->turn < other->turn);
}

struct pool_class *pool_classes_neediest(struct pool_classes *pool_classes, bool may_warm,
                                         uint64_t now_ms)
{
    struct pool_class *found = NULL;
    struct lack most = { 0 };
    for_each(pool_class, pool_classes->list) {
        uint64_t target = pool_class_target(pool_classes, pool_class, now_ms);
        uint64_t have = pool_class->idle + pool_class->building;
        if (have >= target || !(pool_class->has_stood || may_warm))
            continue;
        const struct pool_tenant *row = row_of(pool_classes, pool_class->build.tenant);
        uint32_t built = row->tenant == pool_class->build.tenant ? row->built : 0;
        struct lack lack = { built, target - have, target, pool_class->turn };
        if (found && !is_before(&lack, &most))
            continue;
        found = pool_class;
        most = lack;
    }
    return found;
}

void pool_tenant_builds(struct pool_classes *pool_classes, uint32_t tenant)
{
    struct pool_tenant *row = row_of(pool_classes, tenant);
    uint32_t before = row->tenant == tenant ? row->built : 0;
    *row = (struct pool_tenant){ tenant, before + BUILT };
}

void pool_class_builds(struct pool_classes *pool_classes, struct pool_class *pool_class)
{
    pool_class->building++;
    pool_class->turn = ++pool_classes->turns;
}
