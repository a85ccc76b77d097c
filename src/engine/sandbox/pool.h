/* pool.h - gives runs their sandboxes.
 *
 * A lease describes what is needed. A parked sandbox of that shape is given at once; else one is
 * built and given by a callback: slower, never refused. A sandbox is used once, never again.
 *
 *     building --> parked --> leased --> gone
 *        |           |  ^       ^
 *        |           v  |       |
 *        |         priming      |   (one of a shape at a time, while the pool is idle)
 *        +----------------------+   (a request waits)   */
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "engine/sandbox/pool_classes.h"
#include "engine/sandbox/processor_shares.h"
#include "engine/sandbox/sandbox.h"
#include "engine/sandbox/spawner_client.h"
#include "model/limits.h"

#include <stdbool.h>

/* How the sandbox was made: `usage.start` of results. `told` is called once; `sandbox` is NULL if
 * there is none, and *cause says why. The caller ends a sandbox with pool_return(). */
typedef void pool_leased(void *context, struct sandbox *sandbox, enum run_start start,
                         const error *cause);

struct lease {
    uint32_t template; /* index */
    enum spawn_network network;
    struct spawn_route route; /* with SPAWN_NETWORK_LOOPBACK */
    uint32_t tenant;
    int set;                     /* the zygote to fork from; -1: no interpreter */
    const struct limits *limits; /* borrowed for the call */
    bool has_queue;              /* the caller has a queue, and can wait there */
    pool_leased *told;           /* called with `context`, if it is built */
    void *context;
};

struct pool_ticket;
struct pooled;

struct pool {
    struct spawner_link *spawner;
    uint32_t slots;             /* that may be in use at once, without stuck ones; 0 before the
                                   spawner's hello */
    uint32_t stuck;             /* with processes that could not be ended yet */
    uint32_t in_use;            /* being built, parked, leased, or being ended */
    uint32_t idle;              /* of them parked */
    uint32_t building;          /* of them being built to be parked */
    uint32_t draining;          /* of them returned, but still using slots */
    uint32_t awaited;           /* of them being built for a waiting request */
    uint32_t awaited_by_queue;  /* of them for callers with a queue: builds for sessions, which
                                   have none, must not use up the bound for runs */
    uint32_t awaited_max;       /* the bound on those; one more for a tenant without any */
    struct pool_ticket *queued; /* list of tickets of callers with a queue */
    struct pooled *all;
    struct pool_classes pool_classes;
    struct pooled *returned; /* to be closed in a moment, after the answer was sent */
    uv_timer_t refill;
    bool refill_is_soon;
    uv_timer_t count; /* once a second */
    struct processor_shares shares;
    uv_timer_t idle_timer; /* fires when no request has come for a moment */
    bool is_closing;
    deadline rests_until, may_rest; /* pool_rest() */
    void *context;
    void (*changed)(void *context); /* there may be room, or the spawner has started or ended */
};

/* Opens the link to the spawner; the pool handles its reports. `changed` has been set. How many
 * sandboxes of a shape in use are parked, in `shapes`, may change at any time; 0: none. */
int pool_open(struct pool *pool, struct spawner_link *spawner, uv_loop_t *loop, int socket,
              error *err);
void pool_close(struct pool *pool);

/* Always keeps a few of this shape parked. */
void pool_keep(struct pool *pool, const struct lease *lease);

/* Parks no more sandboxes of a template and ends those that are parked. Returns how many others
 * there are: leased, or being built. */
uint32_t pool_forget(struct pool *pool, uint32_t template);

/* Called when a request waits for processors and memory: for a moment nothing is built in advance
 * or prewarmed. Requested sandboxes are still built, and in each second the pool gets most of the
 * time. */
enum { POOL_REST_MS = 150, POOL_AWAKE_MS = 1000 };
void pool_rest(struct pool *pool);
void pool_wake(struct pool *pool);
int64_t pool_rests_ms(const struct pool *pool); /* how much longer */

enum { POOL_LEASED = 0, POOL_FULL = 1 };

/* Gives either *ret_parked, a sandbox that is ready, or *ret_ticket; then the sandbox comes later.
 * Returns POOL_LEASED, or POOL_FULL: every slot is in use or, for a caller with a queue, the
 * processors are busy with other builds; ask again when the pool has `changed`. */
int pool_lease(struct pool *pool, const struct lease *lease, struct pool_ticket **ret_ticket,
               struct sandbox **ret_parked, error *err);

/* Gives up the ticket: its sandbox is not needed any more. */
void pool_abandon(struct pool_ticket *pending_lease);

/* Takes the sandbox. */
void pool_return(struct pool *pool, struct sandbox *sandbox);
