/* queue.c - the queue, and the results of runs that have ended. */
#include "engine/run/queue.h"

#include "base/clock.h"
#include "engine/observe/metrics.h"
#include "engine/run/run.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

/* How many ended runs are kept for GET /v1/runs/{id}, and how many bytes of them. */
enum { KEPT_MAX = 1000, KEPT_BYTES_MAX = 64 * 1024 * 1024 };

/* How many bytes more may be kept for clients that have not read them yet. */
enum { HELD_BYTES_MAX = 128 * 1024 * 1024 };

/* How many detached runs keep all their output, so that it can be streamed again. */
enum { WHOLE_MAX = 64, WHOLE_BYTES_MAX = 64 * 1024 * 1024 };

/* Runs under way that keep a processor busy. */
enum { BUSY_PER_PROCESSOR = 4 };

void runs_open(struct runs *runs)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    runs->processors = processors > 0 ? (unsigned) processors : 1;
}

static void forget(struct runs *runs, struct run *run)
{
    *(run->older ? &run->older->newer : &runs->oldest) = run->newer;
    *(run->newer ? &run->newer->older : &runs->newest) = run->older;
    if (run->state == RUN_DONE) {
        runs->kept--;
        runs->kept_bytes -= run->result.size;
    }
    run_free(run);
}

void runs_cancel(struct runs *runs)
{
    for (struct run *run = runs->newest; run; run = run->older)
        run_cancel(run);
}

/* A run that has not ended is not freed: its timers and its sandbox still point to it. */
void runs_close(struct runs *runs)
{
    runs_cancel(runs);
    for (struct run *run = runs->oldest, *next; run; run = next) {
        next = run->newer;
        if (run->state == RUN_DONE)
            forget(runs, run);
    }
}

/* Slow readers keep memory: beyond a bound the listeners of the oldest runs are ended. */
static void cut_slow_readers(const struct runs *runs)
{
    size_t over = runs->kept_bytes > HELD_BYTES_MAX ? runs->kept_bytes - HELD_BYTES_MAX : 0;
    for (struct run *run = runs->oldest; run && over > 0; run = run->newer) {
        if (run->state != RUN_DONE || run->result.size == 0)
            continue;
        for (struct run_listener *listener = run->listeners, *next; listener; listener = next) {
            next = listener->next;
            if (listener->release)
                listener->release(listener->context);
        }
        over -= run->result.size < over ? run->result.size : over;
    }
}

static void forget_old(struct runs *runs)
{
    for (struct run *run = runs->oldest, *next; run; run = next) {
        if (runs->kept <= KEPT_MAX && runs->kept_bytes <= KEPT_BYTES_MAX)
            return;
        next = run->newer;
        if (run->state == RUN_DONE && !run->listeners)
            forget(runs, run);
    }
}

static size_t said_bytes(const struct run *run)
{
    const struct collector *collector = &run->collector;
    size_t bytes = collector->results.size + collector->failure.size;
    for (unsigned i = 0; i < 2; i++)
        bytes += collector->output[i].head_size + collector->output[i].tail_size;
    return bytes;
}

/* Frees all but the result of runs that ended longer ago. */
static void keep_results_only(struct runs *runs)
{
    unsigned count = 0;
    size_t bytes = 0;
    for (struct run *run = runs->newest; run; run = run->older) {
        if (!run->is_detached || !run->has_harvest || run->state != RUN_DONE)
            continue;
        bytes += said_bytes(run);
        if (++count <= WHOLE_MAX && bytes <= WHOLE_BYTES_MAX)
            continue;
        run->is_detached = false;
        run_release_buffers(run);
    }
}

void run_detach(struct run *run)
{
    if (run->state != RUN_DONE)
        run->is_detached = true;
}

/* Removes a run from the queue of its account. Returns whether it was there. */
static bool leave_queue(struct runs *runs, struct run *run)
{
    struct account *account = run->account;
    struct run *before = NULL;
    for (struct run *at = account->first_queued; at; before = at, at = at->next_queued) {
        if (at != run)
            continue;
        *(before ? &before->next_queued : &account->first_queued) = run->next_queued;
        if (account->last_queued == run)
            account->last_queued = before;
        run->next_queued = NULL;
        runs->queued--;
        return true;
    }
    return false;
}

void runs_enqueue(struct run *run)
{
    struct runs *runs = run->runs;
    struct account *account = run->account;
    *(account->last_queued ? &account->last_queued->next_queued : &account->first_queued) = run;
    account->last_queued = run;
    fair_share_joins(&account->turn, runs->accounts->clock_us);
    runs->queued++;
    runs_proceed(runs);
}

void runs_list(struct runs *runs, struct run *run)
{
    forget_old(runs);
    cut_slow_readers(runs);
    run->number = ++runs->numbers;
    run->older = runs->newest;
    *(runs->newest ? &runs->newest->newer : &runs->oldest) = run;
    runs->newest = run;
    runs->active += run->kind->is_cell; /* a cell waits in its context, not in this queue */
}

/* Checks that do not depend on the request. */
static int admit(struct runs *runs, struct account *account, error *err)
{
    if (runs->is_closing)
        return fail(err, ERR_UNAVAILABLE, "gloveboxd is ending; try again when it is back");
    if (!runs->pool->spawner->is_open)
        return fail(err, ERR_UNAVAILABLE,
                    "glovebox-spawner has ended and is being restarted; try again in a second");
    uint32_t busy = BUSY_PER_PROCESSOR * runs->processors;
    runs->accounts->busy = busy < runs->pool->slots ? busy : runs->pool->slots;
    runs->accounts->slots = runs->pool->slots;
    if (account_admit(runs->accounts, account, err) < 0)
        return -1;
    if (account_stays_at_share(runs->accounts, account))
        return account_refuse_slot(runs->accounts, account, err);
    bool is_full = runs->queued >= runs->queued_max;
    if (!is_full && overload_is_there(&runs->overload, now_ms()))
        is_full = account->turn.queued >= account_share(runs->accounts, account);
    if (!is_full)
        return 0;
    overload_refused(&runs->overload, now_ms());
    account->refused++;
    account->retry_s = 1;
    return fail(err, ERR_BUSY, "%u runs wait already; try again in a second", runs->queued);
}

void run_cancel(struct run *run)
{
    run->kind->cancel(run);
}

void run_reject(struct run *run)
{
    run->evidence.denied = !run->evidence.pending;
    if (run->fault.code == ERR_NONE) /* no approval was requested: the pre-check has denied it */
        check_refuse(run, &run->collector.denials);
    run->kind->leave_queue(run);
}

static void run_finish_check_only(struct run *run)
{
    run->evidence.exited = true;
    run->kind->leave_queue(run);
}

bool run_is_held(const struct run *run)
{
    return run->evidence.pending || run->evidence.denied;
}

static void on_checked(struct run *run)
{
    bool may_run = run->check_only ? check_decision_of(run) < CHECK_ASK
                                   : run->runs->stages->ask_checked(run, run->request);
    if (!may_run)
        run_reject(run);
    else if (run->check_only)
        run_finish_check_only(run);
    else
        runs_enqueue(run);
}

int runs_submit(struct runs *runs, struct run_request *request, struct run **ret_run, error *err)
{
    struct account *account = request->account;
    struct run *run;
    assert(account); /* a door must set the account */
    if (admit(runs, account, err) < 0) {
        request_free(request);
        return -1;
    }
    if (run_new(runs, request, &run, err) < 0)
        return -1;
    bool is_checked = check_is_wanted(run);
    if (!is_checked && run->plan.policy->approval.when != 0 &&
        runs->stages->ask(run, request, err) < 0) {
        run_drop(run);
        return -1;
    }
    rate_take(&account->rate);
    runs_list(runs, run);
    *ret_run = run;
    if (is_checked)
        runs->stages->check(run, run->request, run->request->is_cell, on_checked);
    else if (run_is_held(run))
        run_reject(run);
    else
        runs_enqueue(run);
    return 0;
}

struct run *runs_find(const struct runs *runs, const struct account *account, const char *id)
{
    for (struct run *run = runs->newest; run; run = run->older)
        if (strcmp(run->id, id) == 0)
            return account_sees(account, run->account) ? run : NULL;
    return NULL;
}

void runs_proceed(struct runs *runs)
{
    struct account *account;
    runs->accounts->slots = runs->pool->slots;
    while ((account = accounts_next(runs->accounts))) {
        struct run *run = account->first_queued;
        int64_t clock_us = account->turn.clock_us;
        if (!run_begin(run))
            return;
        runs->accounts->clock_us = clock_us;
        if (!leave_queue(runs, run))
            continue; /* it has ended already */
        run->charged_us = fair_share_begins(&account->turn);
        runs->active++;
    }
}

/* A run that only waits for another program must not delay that one. */
void runs_leave(struct run *run)
{
    struct account *account = run->account;
    run->has_left = true;
    run->runs->active--;
    if (run->kind->is_cell)
        return;
    fair_share_ends(&account->turn, run->charged_us, (int64_t) run->counters.cpu_us);
    account->built += run->start == START_BUILT;
}

/* Its account gets its turn back. (A cell waits in its context, not in this queue.) */
static void settle(struct runs *runs, struct run *run)
{
    struct account *account = run->account;
    uint64_t cpu_us =
        run->kind->is_cell ? 0 : run->counters.cpu_us; /* session_charge() has charged it */
    if (!run->kind->is_cell && leave_queue(runs, run))
        fair_share_leaves(&account->turn); /* it was cancelled in the queue, or could not begin */
    else if (!run->has_left && (run->kind->is_cell || run->leased_us != 0))
        runs_leave(run); /* otherwise it never came to the queue */
    account->queued_us += (uint64_t) run_queued_us(run);
    if (!run->is_checker) /* its time is charged with the run that it checks */
        account_charge(account, cpu_us + run->checks_cpu_us, &run->verdict, run->evidence.hits);
}

void runs_ended(struct runs *runs, struct run *run)
{
    settle(runs, run);
    if (!run->is_checker) {
        metrics_run_ended(run);
        runs->kept++;
        runs->kept_bytes += run->result.size;
    }
    run_notify(run);
    if (run->is_detached)
        keep_results_only(runs);
    run_release_buffers(run);
    if (run->account->turn.active_max > 0 || runs->accounts->keys.are_several)
        runs_proceed(runs); /* its key may begin another run */
}
