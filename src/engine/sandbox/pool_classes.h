/* pool_classes.h - what parked sandboxes look like, and how many of each are worth having.
 *
 * A shape is everything that is fixed when a sandbox is built. Sandboxes of one shape are alike
 * until they are used; limits that gloveboxd itself holds (time, output, artifacts) are no part of
 * it. */
#pragma once

#include "contract/spawn.h"

#include <stdbool.h>
#include <stdint.h>

enum { POOL_CLASSES_MAX = 32, POOL_TENANTS = 64 };

struct pool_class {
    struct spawn_build build; /* request is 0 */
    bool is_used;
    bool is_kept;       /* always has a few: the operator's own choice */
    bool has_stood;     /* one of it has been ready: its interpreter is warm */
    uint32_t prewarmed; /* of the parked: prewarmed, or being prewarmed */
    bool priming;       /* one of them does */
    uint32_t idle;      /* ready now */
    uint32_t building;  /* on their way to be parked */
    uint32_t recent;    /* leases since the last count */
    double rate;        /* leases a second, of late */
    uint64_t last_ms;
    uint64_t turn;     /* when the last of it was built to be parked, in builds of all shapes */
    uint32_t failures; /* builds in a row that failed: it rests */
    uint64_t rests_until_ms;
};

struct pool_tenant {
    uint32_t tenant, built; /* of late */
};

struct pool_classes {
    struct pool_class list[POOL_CLASSES_MAX];
    uint32_t min, max;                        /* parked sandboxes of one shape that is in use */
    uint64_t turns;                           /* builds of sandboxes to be parked */
    struct pool_tenant tenants[POOL_TENANTS]; /* those that are leased at once, too */
};

/* Finds a shape, or takes a place for it: the one that was used longest ago and has nothing parked.
 * NULL if there is none. */
struct pool_class *pool_classes_find(struct pool_classes *pool_classes,
                                     const struct spawn_build *build, uint64_t now_ms);

/* Counts a lease. */
void pool_class_leased(struct pool_class *pool_class, uint64_t now_ms);

/* Called once a second: how much each shape was in demand. */
void pool_classes_count(struct pool_classes *pool_classes);

/* How many of the parked shall have been prewarmed. The first set of a template is the lightest;
 * the others bring libraries, whose first use takes memory. */
uint32_t pool_class_prewarm_target(const struct pool_class *pool_class);

/* How many should be parked: enough for a twentieth of a second of late demand; none when it was
 * not used for a minute, unless it is kept. */
uint32_t pool_class_target(const struct pool_classes *pool_classes,
                           const struct pool_class *pool_class, uint64_t now_ms);

/* What lacks parked sandboxes, of the tenant for whom fewest were built of late: one that asks much
 * takes what is parked as soon as it stands, so that it always lacks more than others. Of its
 * shapes the one that lacks the largest share of what it should have; of several that lack the
 * same, the one that was not built for longest. NULL: none lacks anything. The first of a shape may
 * need an interpreter that is yet to be warmed, which takes a processor a while: only if
 * `may_warm`. */
struct pool_class *pool_classes_neediest(struct pool_classes *pool_classes, bool may_warm,
                                         uint64_t now_ms);

/* One is being built for a tenant, whatever for. */
void pool_tenant_builds(struct pool_classes *pool_classes, uint32_t tenant);

/* One of it is being built, to be parked. */
void pool_class_builds(struct pool_classes *pool_classes, struct pool_class *pool_class);
