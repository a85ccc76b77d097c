/* runs.c - the queue, and the memory of runs that have ended. */
#include "daemon/runs.h"

#include "daemon/log.h"
#include "daemon/run.h"

#include <string.h>
#include <unistd.h>

/* How many ended runs are remembered for GET /v1/runs/{id}, and how much of them. */
enum { KEPT_MOST = 1000, KEPT_BYTES_MOST = 64 * 1024 * 1024 };

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

/* A run that has not ended is left alone: its timers and its sandbox still point to it. */
void runs_close(struct runs *runs)
{
    runs_cancel(runs);
    for (struct run *run = runs->oldest, *next; run; run = next) {
        next = run->newer;
        if (run->state == RUN_DONE)
            forget(runs, run);
    }
}

static void forget_old(struct runs *runs)
{
    for (struct run *run = runs->oldest, *next; run; run = next) {
        if (runs->kept <= KEPT_MOST && runs->kept_bytes <= KEPT_BYTES_MOST)
            return;
        next = run->newer;
        if (run->state == RUN_DONE && !run->listeners)
            forget(runs, run);
    }
}

static void leave_queue(struct runs *runs, struct run *run)
{
    struct run *before = NULL;
    for (struct run *at = runs->first_queued; at; before = at, at = at->next_queued) {
        if (at != run)
            continue;
        *(before ? &before->next_queued : &runs->first_queued) = run->next_queued;
        if (runs->last_queued == run)
            runs->last_queued = before;
        run->next_queued = NULL;
        runs->queued--;
        runs->active++;
        return;
    }
}

void runs_list(struct runs *runs, struct run *run)
{
    forget_old(runs);
    run->older = runs->newest;
    *(runs->newest ? &runs->newest->newer : &runs->oldest) = run;
    runs->newest = run;
    runs->active += run->cell != NULL; /* it waits for its context, not in our queue */
}

int runs_submit(struct runs *runs, struct run_request *request, struct run **ret_run, error *err)
{
    if (runs->queued >= RUNS_QUEUED_MOST) {
        request_free(request);
        return fail(err, ERR_BUSY, "%u runs wait already; try again in a second", runs->queued);
    }
    if (runs->is_closing) {
        request_free(request);
        return fail(err, ERR_UNAVAILABLE, "gloveboxd is leaving; call again when it is back");
    }
    if (!runs->pool->spawner->is_open) {
        request_free(request);
        return fail(err, ERR_UNAVAILABLE, "glovebox-spawner is gone; start glovebox again");
    }
    struct run *run;
    if (run_new(runs, request, &run, err) < 0)
        return -1;
    runs_list(runs, run);
    *(runs->last_queued ? &runs->last_queued->next_queued : &runs->first_queued) = run;
    runs->last_queued = run;
    runs->queued++;
    runs_proceed(runs);
    *ret_run = run;
    return 0;
}

struct run *runs_find(const struct runs *runs, const char *id)
{
    for (struct run *run = runs->newest; run; run = run->older)
        if (strcmp(run->id, id) == 0)
            return run;
    return NULL;
}

void runs_proceed(struct runs *runs)
{
    while (runs->first_queued) {
        struct run *run = runs->first_queued;
        if (!run_begin(run))
            return;
        leave_queue(runs, run); /* if it has not ended already */
    }
}

void runs_ended(struct runs *runs, struct run *run)
{
    if (!run->cell)
        leave_queue(runs, run); /* it may have been cancelled there */
    runs->active--;
    runs->kept++;
    runs->kept_bytes += run->result.size;
    for (struct run_listener *listener = run->listeners, *next; listener; listener = next) {
        next = listener->next;
        listener->changed(listener->context, run);
    }
    run_slim(run);
}
