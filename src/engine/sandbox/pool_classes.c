/* pool_classes.c - a running mean of demand decides how many sandboxes wait; no clock is read here.
 */
#include "engine/sandbox/pool_classes.h"

#include "base/table.h"

#include <string.h>

enum { FORGOTTEN_MS = 60000, LEASES_PER_PARKED = 20 };
enum { PRIMED_LIGHT = 4, PRIMED_RICH = 1 };

struct shape *shapes_find(struct shapes *shapes, const struct spawn_build *build, uint64_t now_ms)
{
    struct shape *free = NULL;
    for_each(shape, shapes->list) {
        if (shape->is_used && memcmp(&shape->build, build, sizeof *build) == 0)
            return shape;
        if (shape->is_kept || shape->parked > 0 || shape->building > 0)
            continue;
        if (!free || (free->is_used && (!shape->is_used || shape->last_ms < free->last_ms)))
            free = shape;
    }
    if (free)
        *free = (struct shape){ .build = *build, .is_used = true, .last_ms = now_ms };
    return free;
}

void shape_leased(struct shape *shape, uint64_t now_ms)
{
    shape->recent++;
    shape->last_ms = now_ms;
}

void shapes_count(struct shapes *shapes)
{
    for_each(shape, shapes->list) {
        double now = shape->recent;
        shape->rate = now > shape->rate ? now : shape->rate * 0.8 + now * 0.2;
        shape->recent = 0;
    }
}

uint32_t shape_primed_target(const struct shape *shape)
{
    if (!shape->is_used || shape->build.start != SPAWN_FORKED)
        return 0;
    return shape->build.zygote == 0 ? PRIMED_LIGHT : PRIMED_RICH;
}

uint32_t shape_target(const struct shapes *shapes, const struct shape *shape, uint64_t now_ms)
{
    bool is_forgotten = now_ms - shape->last_ms > FORGOTTEN_MS;
    if (!shape->is_used || shapes->most == 0 || now_ms < shape->rests_until_ms)
        return 0;
    if (is_forgotten)
        return shape->is_kept ? shapes->least : 0;
    uint32_t wanted = shapes->least + (uint32_t) (shape->rate / LEASES_PER_PARKED);
    return wanted < shapes->most ? wanted : shapes->most;
}
