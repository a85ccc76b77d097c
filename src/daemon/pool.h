/* pool.h - where a run gets its sandbox from.
 *
 * A lease says what is needed; the sandbox comes later, by a call. Today it is built on demand; a pool of
 * parked sandboxes answers the same call sooner. A sandbox is used once and never comes back. */
#pragma once

#include "base/error.h"
#include "daemon/sandbox.h"
#include "daemon/spawner_link.h"
#include "model/limits.h"

#include <stdbool.h>

/* What the caller needs to know of how it came into being; the word in `usage.start`. */
enum pool_start { POOL_BUILT, POOL_PARKED };

struct lease {
    uint32_t template; /* index */
    enum spawn_network network;
    uint32_t tenant;
    const struct limits *limits; /* borrowed for the call */
};

/* Told once: `sandbox` is NULL if there is none, and *cause says why. The caller ends it with
 * pool_return(). */
typedef void pool_leased(void *context, struct sandbox *sandbox, enum pool_start start,
                         const error *cause);

struct pool_ticket;

struct pool {
    struct spawner_link *spawner;
    uint32_t slots;   /* that may be in use at once; 0 until the spawner has said hello */
    uint32_t in_use;  /* being built, leased, or on their way out */
    struct pooled *leased;
    void *context;
    void (*changed)(void *context); /* a slot has become free, or the spawner has come or gone */
};

/* Opens the link to the spawner, whose watcher the pool is. */
int pool_open(struct pool *pool, struct spawner_link *spawner, uv_loop_t *loop, int socket, error *err);

bool pool_has_room(const struct pool *pool);

int pool_lease(struct pool *pool, const struct lease *lease, pool_leased *told, void *context,
               struct pool_ticket **ret_ticket, error *err);

/* Nobody waits for it any more. */
void pool_abandon(struct pool_ticket *ticket);

/* Takes the sandbox. */
void pool_return(struct pool *pool, struct sandbox *sandbox);
