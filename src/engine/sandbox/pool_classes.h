/* pool_classes.h - the shapes of parked sandboxes, and how many of each should be parked.
 *
 * A shape is everything that is fixed when a sandbox is built; unused sandboxes of one shape are
 * alike. Limits that gloveboxd itself enforces (time, output, artifacts) are not part of it. */
#pragma once

#include "contract/spawn.h"

#include <stdbool.h>
#include <stdint.h>

enum { POOL_CLASSES_MAX = 32, POOL_TENANTS = 64 };

struct pool_class {
    struct spawn_build build; /* request is 0 */
    bool is_used;
    bool is_kept;       /* always has a few, as the operator configured */
    bool has_stood;     /* one was ready before, so the zygote is warm */
    uint32_t prewarmed; /* of the parked: prewarmed, or being prewarmed */
    bool priming;       /* one is being prewarmed */
    uint32_t idle;      /* parked */
    uint32_t building;  /* being built to be parked */
    uint32_t recent;    /* leases since the last count */
    double rate;        /* recent leases per second */
    uint64_t last_ms;
    uint64_t turn;     /* number of its last build for parking, counted over all shapes */
    uint32_t failures; /* builds in a row that failed: the next one waits */
    uint64_t rests_until_ms;
};

struct pool_tenant {
    uint32_t tenant, built; /* recent builds */
};

struct pool_classes {
    struct pool_class list[POOL_CLASSES_MAX];
    uint32_t min, max;                        /* parked sandboxes for each shape in use */
    uint64_t turns;                           /* builds for parking so far */
    struct pool_tenant tenants[POOL_TENANTS]; /* counts builds for requests too */
};

/* Finds a shape or adds it, in place of the one that was used longest ago and has nothing parked.
 * NULL if there is none. */
struct pool_class *pool_classes_find(struct pool_classes *pool_classes,
                                     const struct spawn_build *build, uint64_t now_ms);

/* Counts a lease. */
void pool_class_leased(struct pool_class *pool_class, uint64_t now_ms);

/* Called once a second: updates the demand for each shape. */
void pool_classes_count(struct pool_classes *pool_classes);

/* How many of the parked sandboxes should be prewarmed. The first set of a template is the
 * lightest; the others have libraries, whose first use takes memory. */
uint32_t pool_class_prewarm_target(const struct pool_class *pool_class);

/* How many should be parked: enough for a twentieth of a second of recent demand; none if the shape
 * was not used for a minute, unless `is_kept`. */
uint32_t pool_class_target(const struct pool_classes *pool_classes,
                           const struct pool_class *pool_class, uint64_t now_ms);

/* The shape that most needs a parked sandbox. First by tenant: the one with the fewest recent
 * builds, since a busy tenant uses up what is parked at once and would always come first. Then the
 * shape that lacks the largest share of its target; then the one that was not built for longest.
 * NULL: none lacks any. The first sandbox of a shape may have to warm a zygote, which keeps a
 * processor busy for a while: only if `may_warm`. */
struct pool_class *pool_classes_neediest(struct pool_classes *pool_classes, bool may_warm,
                                         uint64_t now_ms);

/* Counts a build for a tenant, for any purpose. */
void pool_tenant_builds(struct pool_classes *pool_classes, uint32_t tenant);

/* Counts a build of this shape for parking. */
void pool_class_builds(struct pool_classes *pool_classes, struct pool_class *pool_class);
