/* queue.h - what doors need of runs: submit, find, listen, cancel.
 *
 * A door translates its protocol into these calls and holds no logic of its own. The output of a
 * run is read from the run itself (run.h), by position: a slow reader costs no memory. */
#pragma once

#include "base/error.h"
#include "engine/catalog/policies.h"
#include "engine/catalog/templates.h"
#include "engine/run/run_request.h"
#include "engine/sandbox/pool.h"
#include "engine/schedule/accounts.h"
#include "engine/store/blobs.h"

#include <stdbool.h>
#include <uv.h>

enum { RUN_ID_SIZE = 37 /* "run_", 32 hex digits and the end */ };

struct approvals;
struct receipts;
struct run_stages;

/* Is called when a run has something new. While there are listeners the run keeps all output; if
 * all runs together keep too much, the listeners of the oldest run must release it. */
struct run_listener {
    void *context;
    void (*changed)(void *context, struct run *run);
    void (*release)(void *context); /* asks it to stop listening soon; NULL: it will anyway */
    struct run_listener *next;      /* owned by the run */
};

struct runs {
    uv_loop_t *loop;
    struct pool *pool;
    const struct policies *policies;
    const struct templates *templates;
    struct blob_store *blobs;
    struct receipts *receipts;       /* NULL: none are written (tests) */
    struct approvals *approvals;     /* NULL: there are no approvals */
    const struct run_stages *stages; /* NULL: there are no stages (tests) */
    struct network *network;         /* NULL: no network for any run */
    unsigned processors;
    bool is_closing; /* no new run is accepted */

    struct accounts *accounts; /* each has a queue */
    unsigned queued_max;       /* in all of them */
    unsigned queued;
    struct overload overload;    /* after that queue was full */
    unsigned active;             /* between queue and end */
    struct run *newest, *oldest; /* list of all runs, by age */
    size_t kept_bytes;           /* of results of runs that have ended */
    unsigned kept;
    uint64_t numbers; /* how many runs there were */
};

/* To be set before, all borrowed: `loop`, `pool`, `policies`, `templates`, `blobs`, `accounts`, and
 * `queued_max`. */
void runs_open(struct runs *runs);
void runs_close(struct runs *runs);

/* Cancels every run. */
void runs_cancel(struct runs *runs);

/* Begins a run for request->account, which the door has set. Takes  the request, also when it
 * fails.
 * Gives  *ret_run, borrowed: valid while it has a listener, else until the caller returns.
 * Fails  ERR_BUSY         too many wait, or the quota of the key is used up; try again
 *        ERR_FORBIDDEN    the key may not use this policy
 *        ERR_UNAVAILABLE  the spawner has ended, or the daemon is ending
 *        else as run_plan_grant() */
int runs_submit(struct runs *runs, struct run_request *request, struct run **ret_run, error *err);

/* Chooses the id for a run, for a door that must note it before the run begins. */
void run_choose_id(char ret_id[RUN_ID_SIZE]);

/* NULL if there is no run with this id that this account may see, or it ended so long ago that it
 * was deleted. */
struct run *runs_find(const struct runs *runs, const struct account *account, const char *id);

/* The pool has room: starts waiting runs. */
void runs_proceed(struct runs *runs);

void run_listen(struct run *run, struct run_listener *listener);
void run_unlisten(struct run *run, struct run_listener *listener);

/* The run goes on if its client leaves; its output is kept for a while, so that the client can
 * resume its stream. */
void run_detach(struct run *run);

/* Ends the run, if it has not ended. */
void run_cancel(struct run *run);
