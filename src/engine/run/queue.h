/* queue.h - the whole interface that doors have to runs: submit, find, listen, cancel.
 *
 * A door translates its protocol into these calls and holds no logic of its own. What a run has
 * said so far is read from the run itself (run.h), by position: a slow reader costs no memory. */
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
struct run;
struct run_stages;

/* Is notified when a run has something new. While it listens the run keeps everything; if that
 * becomes too much of all runs, the reader of the oldest has to drop it. */
struct run_listener {
    void *context;
    void (*changed)(void *context, struct run *run);
    void (*release)(void *context); /* soon, not at once; NULL: it is short of it anyway */
    struct run_listener *next;      /* the run's */
};

struct runs {
    uv_loop_t *loop;
    struct pool *pool;
    const struct policies *policies;
    const struct templates *templates;
    struct blob_store *blobs;
    struct receipts *receipts;       /* NULL: none are written (tests) */
    struct approvals *approvals;     /* NULL: there are no approvals */
    const struct run_stages *stages; /* NULL: no run goes through any (tests) */
    struct network *network;         /* NULL: nothing leads out */
    unsigned processors;
    bool is_closing; /* no new run is taken */

    struct accounts *accounts; /* each has a queue of its own */
    unsigned queued_max;       /* in all of them */
    unsigned queued;
    struct overload overload;    /* that queue was full */
    unsigned active;             /* between queue and end */
    struct run *newest, *oldest; /* every run that is known, by age */
    size_t kept_bytes;           /* results of those that have ended */
    unsigned kept;
    uint64_t numbers;                       /* that were given to runs so far */
    struct agent_measured usually_measured; /* of the last one */
};

/* `loop`, `pool`, `policies`, `templates`, `blobs` and `accounts` have been set, all borrowed, and
 * `queued_max`. */
void runs_open(struct runs *runs);
void runs_close(struct runs *runs);

/* Asks every run to end. */
void runs_cancel(struct runs *runs);

/* Begins a run for request->account, which the door has set. Takes  the request, also when it
 * fails.
 * Gives  *ret_run, borrowed: it may be used while it has a listener, else until the loop goes on.
 * Fails  ERR_BUSY         too many wait, or the quota of the key is used up; try again
 *        ERR_FORBIDDEN    the key may not use this policy
 *        ERR_UNAVAILABLE  the spawner is gone, or the daemon is leaving
 *        else as run_plan_grant() */
int runs_submit(struct runs *runs, struct run_request *request, struct run **ret_run, error *err);

/* For a door that must note the id of a run before it begins. */
void run_choose_id(char ret_id[RUN_ID_SIZE]);

/* NULL if no run that this account may see has this id, or it ended so long ago that it is
 * forgotten. */
struct run *runs_find(const struct runs *runs, const struct account *account, const char *id);

/* The pool has room: the next waiting run goes on. */
void runs_proceed(struct runs *runs);

void run_listen(struct run *run, struct run_listener *listener);
void run_unlisten(struct run *run, struct run_listener *listener);

/* It goes on although its client may leave; what it said is kept for a while, so that
 * a stream can be taken up where it broke off. */
void run_detach(struct run *run);

/* Ends it, if it has not ended. */
void run_cancel(struct run *run);
