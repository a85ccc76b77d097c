/* life.c - what happens in one daemon: clients act for a while, then everything must come to rest,
 * or it is told to end in the middle of it all. */
#include "clients_internal.h"

#include "engine/run/queue.h"
#include "engine/sandbox/pool.h"
#include "engine/session/session_registry.h"

#include <signal.h>
#include <stdio.h>

enum { STEPS_MAX = 60, REST_MS = 400000, LOOK_MS = 500 };

static struct life {
    unsigned steps_left;
    int64_t rests_until_us;
    bool is_ending, is_probing;
} life;

static void step(void *context);

static void step_soon(void)
{
    static const unsigned usual_ms[] = { 2, 10, 40 };
    int64_t ms = (int64_t) chance(one_in(14) ? 3000 : usual_ms[chance(3)]);
    sim_after(ms * 1000, step, NULL);
}

/* Everything that was begun has ended, and each slot is free or parked. Gives  what is not so. */
static const char *unrest(void)
{
    static char text[160];
    const struct runs *runs = sim_service->runs;
    const struct pool *pool = runs->pool;
    unsigned alive = sim_service->sessions->alive;
    if (spawner_has_gone() ||
        (runs->active == 0 && runs->queued == 0 && alive == 0 && clients_watching() == 0 &&
         pool->in_use == pool->idle && pool->stuck == 0 && spawner_used() == pool->in_use))
        return NULL;
    (void) snprintf(text, sizeof text,
                    "%u runs, %u wait, %u sessions, %u watched, slots: %u used, %u idle, %u stuck, "
                    "%u of the spawner",
                    runs->active, runs->queued, alive, clients_watching(), pool->in_use, pool->idle,
                    pool->stuck, spawner_used());
    return text;
}

static void leave(void *context)
{
    (void) context;
    if (life.is_ending)
        return;
    life.is_ending = true;
    trace("the daemon is told to end");
    (void) raise(SIGTERM);
}

static void rest(void *context)
{
    (void) context;
    clients_cancel_some(); /* who sleeps for ever is not waited for */
    const char *why = unrest();
    if ((!why || life.is_probing) && world->is_calm) {
        life.is_probing = true;
        const char *missing = clients_probe();
        why = missing ? missing : why;
    }
    if (!why)
        leave(NULL);
    else if (world->clock_us > life.rests_until_us)
        finding("what was begun does not come to rest: %s", why);
    else
        sim_after((int64_t) LOOK_MS * 1000, rest, NULL);
}

static void end_steps(void)
{
    life.rests_until_us = world->clock_us + (int64_t) REST_MS * 1000;
    clients_end_sessions();
    if (world->is_calm || one_in(2))
        rest(NULL);
    else
        sim_after((int64_t) chance(2000) * 1000, leave, NULL); /* in the middle of it all */
}

static void step(void *context)
{
    (void) context;
    sim_op();
    if (life.steps_left-- == 0) {
        end_steps();
        return;
    }
    clients_act();
    step_soon();
}

void life_begin(void)
{
    life = (struct life){ .steps_left = 5 + (unsigned) chance(STEPS_MAX) };
    clients_come();
    step_soon();
}
