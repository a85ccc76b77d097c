/* run_clock.c - the state of a run, its timer, and the limits that gloveboxd itself enforces. */
#include "engine/run/run.h"

#include <assert.h>

enum { CPU_LOOK_MIN_MS = 5, CPU_LOOK_MAX_MS = 1000 };

static void on_timer(uv_timer_t *timer);

static void sooner(int64_t *left_ms, deadline end)
{
    if (end.at_ms == 0)
        return;
    int64_t its = deadline_left_ms(end);
    if (*left_ms < 0 || its < *left_ms)
        *left_ms = its;
}

void run_set_timer(struct run *run)
{
    int64_t left_ms = -1;
    sooner(&left_ms, run->state_ends);
    sooner(&left_ms, run->look);
    if (run->state == RUN_RUNNING) {
        sooner(&left_ms, run->wall_ends);
        sooner(&left_ms, run->cpu_look);
    }
    uv_update_time(run->runs->loop);
    if (left_ms < 0)
        (void) uv_timer_stop(&run->timer);
    else
        (void) uv_timer_start(&run->timer, on_timer, (uint64_t) left_ms, 0);
}

void run_bound_state(struct run *run)
{
    int64_t max_ms = run_state_max_ms(run->kind->states, run->state);
    run->state_ends = max_ms > 0 ? deadline_in(max_ms) : (deadline){ 0 };
    run_set_timer(run);
}

void run_set_state(struct run *run, enum run_state next)
{
    assert(run_state_may_follow(run->kind->states, run->state, next));
    run->state = next;
    run->look = (deadline){ 0 };
    run_bound_state(run);
}

/* The processor time cannot be used up before this, even with all processors busy. */
static void look_at_cpu_later(struct run *run, uint64_t left_us)
{
    int64_t min_ms = (int64_t) (left_us / run->runs->processors / 1000);
    if (min_ms < CPU_LOOK_MIN_MS)
        min_ms = CPU_LOOK_MIN_MS;
    if (min_ms > CPU_LOOK_MAX_MS)
        min_ms = CPU_LOOK_MAX_MS;
    run->cpu_look = deadline_in(min_ms);
}

static void look_at_cpu(struct run *run)
{
    uint64_t limit_us = run->plan.limits.cpu * 1000;
    uint64_t used_us = counters_cpu_us(run->kind->groups(run));
    used_us = used_us > run->counters_before.cpu_us ? used_us - run->counters_before.cpu_us : 0;
    if (used_us >= limit_us)
        run_stop_for(run, LIMIT_cpu);
    else
        look_at_cpu_later(run, limit_us - used_us);
}

void run_start_clock(struct run *run)
{
    run->wall_ends = deadline_in((int64_t) run->plan.limits.wall + 1); /* rounded up */
    look_at_cpu_later(run, run->plan.limits.cpu * 1000);
    run_set_state(run, RUN_RUNNING);
}

void run_stop_for(struct run *run, enum limit_id limit)
{
    if (run->state != RUN_RUNNING)
        return;
    run->evidence.stopped_for = limit;
    run->kind->stop(run);
}

static void on_timer(uv_timer_t *timer)
{
    struct run *run = timer->data;
    if (run->state == RUN_RUNNING && deadline_has_passed(run->wall_ends)) {
        run_stop_for(run, LIMIT_wall);
    } else if (run->state == RUN_RUNNING && deadline_has_passed(run->cpu_look)) {
        look_at_cpu(run);
    } else if (run->look.at_ms != 0 && deadline_has_passed(run->look)) {
        run->look = (deadline){ 0 };
        run->kind->look(run);
    } else if (run->state_ends.at_ms != 0 && deadline_has_passed(run->state_ends)) {
        run->kind->timed_out(run);
        return;
    }
    if (run->state != RUN_DONE)
        run_set_timer(run);
}
