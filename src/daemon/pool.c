/* pool.c - builds on demand, and counts slots until the spawner says that they are free again. */
#include "daemon/pool.h"

#include "daemon/log.h"

#include <stdlib.h>
#include <unistd.h>

struct pool_ticket {
    struct pool *pool;
    pool_leased *told; /* NULL: abandoned */
    void *context;
};

struct pooled {
    struct sandbox *sandbox;
    struct pooled *next;
};

static void free_slot(struct pool *pool)
{
    if (pool->in_use > 0)
        pool->in_use--;
    pool->changed(pool->context);
}

static struct sandbox *find(const struct pool *pool, const struct spawn_slot *name)
{
    for (const struct pooled *row = pool->leased; row; row = row->next) {
        const struct spawn_slot *its = sandbox_name(row->sandbox);
        if (its->slot == name->slot && its->generation == name->generation)
            return row->sandbox;
    }
    return NULL;
}

static void on_hello(void *context)
{
    struct pool *pool = context;
    const struct spawn_hello *hello = &pool->spawner->hello;
    pool->slots = hello->slots;
    log_event(LOG_NOTICE, "spawner.ready", COUNT("slots", hello->slots),
              COUNT("templates", hello->templates), COUNT("swept", hello->swept));
    pool->changed(pool->context);
}

static void on_released(void *context, const struct spawn_released *released)
{
    if (released->leftovers > 0)
        log_event(LOG_ERROR, "sandbox.left_something", COUNT("slot", released->slot),
                  COUNT("leftovers", released->leftovers));
    free_slot(context);
}

static void on_lost(void *context, const struct spawn_slot *name)
{
    struct pool *pool = context;
    struct sandbox *sandbox = find(pool, name);
    if (!sandbox)
        return;
    error cause;
    (void) fail(&cause, ERR_SYSTEM, "glovebox-init ended unasked");
    sandbox_kill(sandbox, &cause);
}

static void on_gone(void *context)
{
    struct pool *pool = context;
    pool->slots = 0;
    error cause;
    (void) fail(&cause, ERR_UNAVAILABLE, "glovebox-spawner is gone; start glovebox again");
    for (struct pooled *first; (first = pool->leased) != NULL;) {
        sandbox_kill(first->sandbox, &cause); /* its user returns it when it hears this */
        if (pool->leased == first)
            break;
    }
    pool->changed(pool->context);
}

int pool_open(struct pool *pool, struct spawner_link *spawner, uv_loop_t *loop, int socket, error *err)
{
    struct spawner_watcher watcher = { .context = pool,
                                       .hello = on_hello,
                                       .released = on_released,
                                       .lost = on_lost,
                                       .gone = on_gone };
    pool->spawner = spawner;
    return spawner_open(spawner, loop, socket, &watcher, err);
}

bool pool_has_room(const struct pool *pool)
{
    return pool->in_use < pool->slots;
}

/* A sandbox for which nobody waits any more, or that cannot be held. */
static void discard(struct pool *pool, const struct spawned *spawned)
{
    (void) close(spawned->inside);
    for (int i = 0; i < GROUPS; i++)
        if (spawned->groups[i] >= 0)
            (void) close(spawned->groups[i]);
    spawner_release(pool->spawner, &spawned->name);
}

static void on_built(void *context, const struct spawned *spawned, const error *cause)
{
    struct pool_ticket *ticket = context;
    struct pool *pool = ticket->pool;
    pool_leased *told = ticket->told;
    void *user = ticket->context;
    free(ticket);
    if (!spawned) {
        if (told)
            told(user, NULL, POOL_BUILT, cause);
        free_slot(pool);
        return;
    }
    if (!told) {
        discard(pool, spawned);
        return;
    }

    error err;
    struct pooled *row = calloc(1, sizeof *row);
    if (!row) {
        discard(pool, spawned);
        (void) fail(&err, ERR_SYSTEM, "no memory for a sandbox");
        told(user, NULL, POOL_BUILT, &err);
        return;
    }
    if (sandbox_open(pool->spawner, spawned, &row->sandbox, &err) < 0) {
        free(row);
        told(user, NULL, POOL_BUILT, &err);
        return;
    }
    row->next = pool->leased;
    pool->leased = row;
    told(user, row->sandbox, POOL_BUILT, NULL);
}

int pool_lease(struct pool *pool, const struct lease *lease, pool_leased *told, void *context,
               struct pool_ticket **ret_ticket, error *err)
{
    if (!pool_has_room(pool))
        return fail(err, ERR_BUSY, "all %u sandboxes are in use", pool->slots);
    struct pool_ticket *ticket = calloc(1, sizeof *ticket);
    if (!ticket)
        return fail(err, ERR_SYSTEM, "no memory for a lease");
    *ticket = (struct pool_ticket){ .pool = pool, .told = told, .context = context };

    const struct limits *limits = lease->limits;
    struct spawn_build build = {
        .template = lease->template,
        .network = lease->network,
        .start = SPAWN_EMPTY,
        .tenant = lease->tenant,
        .open_files = (uint32_t) limits->open_files,
        .memory_bytes = limits->memory,
        .processes = limits->processes,
        .disk_bytes = limits->disk,
        .inodes = limits->inodes,
        .cpus_milli = limits->cpus,
        .disk_read_rate = limits->disk_read_rate,
        .disk_write_rate = limits->disk_write_rate,
    };
    if (spawner_build(pool->spawner, &build, on_built, ticket, err) < 0) {
        free(ticket);
        return -1;
    }
    pool->in_use++;
    *ret_ticket = ticket;
    return 0;
}

void pool_abandon(struct pool_ticket *ticket)
{
    ticket->told = NULL;
}

void pool_return(struct pool *pool, struct sandbox *sandbox)
{
    for (struct pooled **at = &pool->leased; *at; at = &(*at)->next) {
        if ((*at)->sandbox != sandbox)
            continue;
        struct pooled *row = *at;
        *at = row->next;
        free(row);
        break;
    }
    sandbox_close(sandbox);
}
