/* service_runs.h - runs and cells as a door has them: begun once, followed, cancelled, listed.
 *
 * A watch follows one run. Its owner is woken when there is something new, and reads it then, by
 * position: a slow reader costs no memory and holds up nothing. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "engine/service/service_orders.h"
#include "model/outcome.h"

#include <json.h>

struct run;
struct watch;

/* What happens to the run when the watch is closed before the run is over. */
enum hangup {
    HANGUP_LEAVES,   /* nothing: another client owns it */
    HANGUP_CANCELS,  /* its result is not wanted */
    HANGUP_DETACHES, /* it goes on, and its result is kept for a while */
};

struct watcher {
    void *context;
    void (*woken)(void *context);
    void (*cut)(void *context); /* close the watch soon: it holds too much memory */
    enum hangup hangup;
};

/* --- beginning one --- */

/* A run that is to be begun, once for the key of its order. */
struct run_order {
    struct order order;
    struct watcher watcher;
    struct json_object *json; /* a RunRequest of docs/api.md; taken, also on failure */
};

/* Gives  *ret_watch: of the run that such an order has begun before, with order->order.is_replayed.
 * Fails  as service_order_find(), service_order_keep() and order_fail_forgotten()
 *        ERR_BUSY         too many wait, or the quota of the key is used up
 *        ERR_FORBIDDEN    the key may not use this policy
 *        ERR_UNAVAILABLE  the spawner is gone, or the daemon is leaving
 *        ERR_BAD_REQUEST, ERR_LIMIT, ERR_POLICY  what is asked for cannot be */
int service_run(struct service *service, const struct caller *caller, struct run_order *order,
                struct watch **ret_watch, error *err);

/* What begins a run or a cell; a door has service_run() and service_cell(). */
struct run_starter {
    int (*begin)(struct run_starter *starter, const char *id, struct run **ret_run, error *err);
    struct service *service;
    const struct caller *caller;
};

/* As service_run(), with a starter of one's own, which is called at most once. */
int service_start_once(struct run_starter *starter, struct order *order,
                       const struct watcher *watcher, struct watch **ret_watch, error *err);

/* --- one that there is --- */

/* Also one that was lost with a daemon before this one: watch_is_lost().
 * Fails  ERR_NOT_FOUND  no run that this caller may see has this id, or it was forgotten */
struct watch *service_watch(struct service *service, const struct caller *caller, const char *id,
                            const struct watcher *watcher, error *err); /* NULL: it failed */
void watch_close(struct watch *watch);
void watch_let_run(struct watch *watch); /* from here on its end is none of the run */
void watch_cancel(struct watch *watch);  /* ends the run, if it has not ended */

const char *watch_id(const struct watch *watch);
const char *watch_state(const struct watch *watch); /* queued, building … as it may be reported */
/* What its code has used so far, while it runs; memory at its peak, 0: not counted here. False: it
 * does not run. */
bool watch_usage(const struct watch *watch, uint64_t *ret_cpu_us, uint64_t *ret_memory_bytes);
bool watch_is_over(const struct watch *watch);
bool watch_is_lost(
    const struct watch *watch); /* with the daemon before: it is over, and has a result only */
enum run_status watch_status(const struct watch *watch);     /* once it is over */
const struct bytes *watch_result(const struct watch *watch); /* its document, once it is over */

/* --- what it tells --- */

enum run_event_kind {
    EVENT_STARTED,
    EVENT_STDOUT,
    EVENT_STDERR,
    EVENT_RESULT,
    EVENT_DENIAL,
    EVENT_ARTIFACT,
    EVENT_ERROR,
    EVENT_END,
    EVENT_KINDS
};

/* Of STDOUT and STDERR the bytes are what the program wrote, a whole number of characters of UTF-8
 * where it wrote some; of all others they are JSON: an object, and of END the result. */
struct run_event {
    enum run_event_kind kind;
    const struct bytes *in; /* grows and never changes until the next call, though it may move */
    size_t from, size;
};

const char *run_event_name(enum run_event_kind kind);

enum { WATCH_LATER = 0, WATCH_EVENT = 1, WATCH_OVER = 2, WATCH_POSITION_SIZE = 140 };

/* Gives  *ret_event with WATCH_EVENT. WATCH_LATER: nothing is new. WATCH_OVER: END was given. */
int watch_next(struct watch *watch, struct run_event *ret_event);

/* Where it stands behind the last event, to go on there with another watch. */
void watch_position(const struct watch *watch, char ret_position[WATCH_POSITION_SIZE]);
/* Fails  ERR_BAD_REQUEST  if it is not one of ours; one beyond what there is just waits. */
int watch_seek(struct watch *watch, const char *position, error *err);

/* --- all of them --- */

struct run_row {
    const char *id, *status; /* the state, and once it is over how it ended */
    const char *fault;       /* NULL: none, or it is not over */
    bool is_over;
    int64_t created_ms, took_ms; /* since 1970; once it is over */
};

struct run_page {
    const char *status; /* NULL: any */
    uint64_t max;
    uint64_t cursor; /* `next` of the page before; UINT64_MAX: the newest come first */
    void *context;
    void (*each)(void *context, const struct run_row *row);
    uint64_t next; /* set by service_list_runs(); 0: there are no more */
};

/* Runs that come or are forgotten between two pages neither shift a page nor spoil it.
 * Fails  ERR_BAD_REQUEST  there is no such status. */
int service_list_runs(const struct service *service, const struct caller *caller,
                      struct run_page *page, error *err);
