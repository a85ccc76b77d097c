/* pool_classes.h - what parked sandboxes look like, and how many of each are worth having.
 *
 * A shape is everything that is fixed when a sandbox is built. Sandboxes of one shape are alike
 * until they are used; limits that gloveboxd itself holds (time, output, artifacts) are no part of
 * it. */
#pragma once

#include "contract/spawn.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHAPES_MOST = 32 };

struct shape {
    struct spawn_build build; /* request is 0 */
    bool is_used;
    bool is_kept;      /* always has a few: the operator's own choice */
    bool has_stood;    /* one of it has been ready: its interpreter is warm */
    uint32_t primed;   /* of the parked: have rehearsed what comes first, or do it now */
    bool priming;      /* one of them does */
    uint32_t parked;   /* ready now */
    uint32_t building; /* on their way to be parked */
    uint32_t recent;   /* leases since the last count */
    double rate;       /* leases a second, of late */
    uint64_t last_ms;
    uint32_t failures; /* builds in a row that failed: it rests */
    uint64_t rests_until_ms;
};

struct shapes {
    struct shape list[SHAPES_MOST];
    uint32_t least, most; /* parked sandboxes of one shape that is in use */
};

/* Finds a shape, or takes a place for it: the one that was used longest ago and has nothing parked.
 * NULL if there is none. */
struct shape *shapes_find(struct shapes *shapes, const struct spawn_build *build, uint64_t now_ms);

/* Counts a lease. */
void shape_leased(struct shape *shape, uint64_t now_ms);

/* Called once a second: how much each shape was in demand. */
void shapes_count(struct shapes *shapes);

/* How many of the parked shall have rehearsed. The first set of a template is the lightest; the
 * others bring libraries, whose first use takes memory. */
uint32_t shape_primed_target(const struct shape *shape);

/* How many should be parked: enough for a twentieth of a second of late demand; none when it was
 * not used for a minute, unless it is kept. */
uint32_t shape_target(const struct shapes *shapes, const struct shape *shape, uint64_t now_ms);
