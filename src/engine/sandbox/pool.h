/* pool.h - where a run gets its sandbox from.
 *
 * A lease says what is needed. A parked sandbox of that shape is given at once; else one is built
 * and comes later, by a call: slower, never refused. A sandbox is used once and never comes back.
 *
 *     building --> parked --> leased --> gone
 *        |           |  ^       ^
 *        |           v  |       |
 *        |         priming      |   (one of a shape, while nothing else is to do)
 *        +----------------------+   (a request waits)   */
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "engine/sandbox/pool_classes.h"
#include "engine/sandbox/sandbox.h"
#include "engine/sandbox/spawner_client.h"
#include "model/limits.h"

#include <stdbool.h>

/* What the caller needs to know of how it came into being; the word in `usage.start`. */
/* Told once: `sandbox` is NULL if there is none, and *cause says why. The caller ends it with
 * pool_return(). */
typedef void pool_leased(void *context, struct sandbox *sandbox, enum run_start start,
                         const error *cause);

struct lease {
    uint32_t template; /* index */
    enum spawn_network network;
    struct spawn_route route; /* with SPAWN_NETWORK_LOOPBACK */
    uint32_t tenant;
    int set;                     /* of the zygote to fork from; -1: no interpreter */
    const struct limits *limits; /* borrowed for the call */
    bool has_queue;              /* the caller has a queue of its own: it waits its turn there */
    pool_leased *told;           /* with this context, if it comes later */
    void *context;
};

struct pool_ticket;
struct pooled;

struct pool {
    struct spawner_link *spawner;
    uint32_t slots;    /* that may be in use at once; 0 until the spawner has said hello. Without
                          those that are stuck; 0, too, where all are */
    uint32_t stuck;    /* whose processes would not go, until they do */
    uint32_t in_use;   /* being built, parked, leased, or on their way out */
    uint32_t idle;     /* of them ready and waiting */
    uint32_t building; /* of them on their way to be parked */
    uint32_t draining; /* of them given back, their slots not free yet */
    uint32_t awaited;  /* of them being built while a request waits */
    uint32_t awaited_by_queue; /* of them for a caller with a queue: sessions, which have none, take
                                  no place from runs */
    uint32_t awaited_max;      /* of those; one more for a tenant that awaits none */
    struct pool_ticket *queued; /* what those of a queue wait for */
    struct pooled *all;
    struct pool_classes pool_classes;
    struct pooled *returned; /* given back, and closed in a moment: the answer goes first */
    uv_timer_t refill;
    bool refill_is_soon;
    uv_timer_t count;      /* once a second */
    uv_timer_t idle_timer; /* when no request has come for a moment */
    bool is_closing;
    deadline rests_until, may_rest; /* pool_rest() */
    void *context;
    void (*changed)(void *context); /* there may be room, or the spawner has come or gone */
};

/* Opens the link to the spawner, whose watcher the pool is. `changed` has been set; how many
 * sandboxes are parked of each shape in use, in `shapes`, may change at any time; with 0 none. */
int pool_open(struct pool *pool, struct spawner_link *spawner, uv_loop_t *loop, int socket,
              error *err);
void pool_close(struct pool *pool);

/* Keeps a few of this shape from now on. */
void pool_keep(struct pool *pool, const struct lease *lease);

/* Parks no more sandboxes of a template, and ends those that are parked. Returns how many there
 * still are: leased, or on their way. */
uint32_t pool_forget(struct pool *pool, uint32_t template);

/* A request waits for processors and memory: nothing is built ahead or prewarmed for a moment. What
 * is asked for is built as ever, and in each second most of the time is the pool's own. */
enum { POOL_REST_MS = 150, POOL_AWAKE_MS = 1000 };
void pool_rest(struct pool *pool);
void pool_wake(struct pool *pool);
int64_t pool_rests_ms(const struct pool *pool); /* how long it still does */

enum { POOL_LEASED = 0, POOL_FULL = 1 };

/* Gives either *ret_parked, a sandbox that is ready now, or *ret_ticket, and the sandbox comes
 * later. Returns POOL_LEASED, or POOL_FULL: every slot is taken, or, for a caller with a queue, as
 * many are being built for queues as the processors can do at once; ask again when the pool has
 * `changed`. */
int pool_lease(struct pool *pool, const struct lease *lease, struct pool_ticket **ret_ticket,
               struct sandbox **ret_parked, error *err);

/* Its result is not needed any more. */
void pool_abandon(struct pool_ticket *pending_lease);

/* Takes the sandbox. */
void pool_return(struct pool *pool, struct sandbox *sandbox);
