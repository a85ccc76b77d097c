/* service_runs.h - runs and cells for doors: begin once, follow, cancel, list.
 *
 * A watch follows one run. Its owner is woken when there is something new, and reads it by
 * position: a slow reader costs no memory and delays nothing. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "engine/service/service_orders.h"
#include "model/outcome.h"

#include <json.h>

struct run;
struct watch;

/* What happens to the run if the watch is closed before the run has ended. */
enum hangup {
    HANGUP_LEAVES,   /* nothing: another client owns the run */
    HANGUP_CANCELS,  /* it is cancelled */
    HANGUP_DETACHES, /* it goes on, and its result is kept for a while */
};

struct watcher {
    void *context;
    void (*woken)(void *context);
    void (*cut)(void *context); /* asks to close the watch: its run keeps too much memory */
    enum hangup hangup;
};

/* --- beginning one ---------------------------------------------------------------------------- */

/* A run to begin, once for the key of its order. */
struct run_order {
    struct order order;
    struct watcher watcher;
    struct json_object *json; /* a RunRequest of docs/api.md; taken, also on failure */
};

/* Gives  *ret_watch; of the run that such an order has begun before, with order->order.is_replayed.
 * Fails  as service_order_find(), service_order_keep() and order_fail_forgotten(); ERR_BUSY  too
 * many wait, or the quota of the key is used up; ERR_FORBIDDEN  the key may not use this policy;
 * ERR_UNAVAILABLE  the spawner or the daemon is ending; ERR_BAD_REQUEST, ERR_LIMIT, ERR_POLICY  the
 * request is invalid or not allowed */
int service_run(struct service *service, const struct caller *caller, struct run_order *order,
                struct watch **ret_watch, error *err);

/* Begins a run or a cell; doors use service_run() and service_cell(). */
struct run_starter {
    int (*begin)(struct run_starter *starter, const char *id, struct run **ret_run, error *err);
    struct service *service;
    const struct caller *caller;
};

/* As service_run(), with another starter, which is called at most once. */
int service_start_once(struct run_starter *starter, struct order *order,
                       const struct watcher *watcher, struct watch **ret_watch, error *err);

/* --- an existing one -------------------------------------------------------------------------- */

/* Follows a run, also one that was lost with an earlier daemon: watch_is_lost(). Fails
 * ERR_NOT_FOUND  there is no run with this id that the caller may see, or it was deleted */
struct watch *service_watch(struct service *service, const struct caller *caller, const char *id,
                            const struct watcher *watcher, error *err); /* NULL: it failed */
void watch_close(struct watch *watch);
void watch_let_run(struct watch *watch); /* closing it does not end the run any more */
void watch_cancel(struct watch *watch);  /* ends the run, if it has not ended */

const char *watch_id(const struct watch *watch);
const char *watch_state(const struct watch *watch); /* the state to report: queued, building … */
/* What its code has used so far, while it runs; memory: the peak, 0: unknown here. False: it does
 * not run. */
bool watch_usage(const struct watch *watch, uint64_t *ret_cpu_us, uint64_t *ret_memory_bytes);
bool watch_is_over(const struct watch *watch);
bool watch_is_lost(const struct watch *watch); /* with an earlier daemon: only has a result */
enum run_status watch_status(const struct watch *watch);     /* after its end */
const struct bytes *watch_result(const struct watch *watch); /* its document, once it is over */

/* --- events ----------------------------------------------------------------------------------- */

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

/* STDOUT and STDERR have the bytes that the program wrote, split between characters of UTF-8; all
 * others have JSON: an object, for END the result. */
struct run_event {
    enum run_event_kind kind;
    const struct bytes *in; /* until the next call it only grows, but may move */
    size_t from, size;
};

const char *run_event_name(enum run_event_kind kind);

enum { WATCH_LATER = 0, WATCH_EVENT = 1, WATCH_OVER = 2, WATCH_POSITION_SIZE = 140 };

/* Gives  *ret_event with WATCH_EVENT. WATCH_LATER: nothing new. WATCH_OVER: END was given. */
int watch_next(struct watch *watch, struct run_event *ret_event);

/* The position after the last event, where another watch may continue. */
void watch_position(const struct watch *watch, char ret_position[WATCH_POSITION_SIZE]);
/* Fails  ERR_BAD_REQUEST  malformed. A position beyond the last event only waits. */
int watch_seek(struct watch *watch, const char *position, error *err);

/* --- the list of runs ------------------------------------------------------------------------- */

struct run_row {
    const char *id, *status; /* the state; after the end how it ended */
    const char *fault;       /* NULL: none, or not ended */
    bool is_over;
    int64_t created_ms, took_ms; /* since 1970; after its end */
};

struct run_page {
    const char *status; /* NULL: any */
    uint64_t max;
    uint64_t cursor; /* `next` of the page before; UINT64_MAX: begins with the newest */
    void *context;
    void (*each)(void *context, const struct run_row *row);
    uint64_t next; /* set by service_list_runs(); 0: there are no more */
};

/* Runs that begin or are deleted between two pages do not shift the next page. Fails
 * ERR_BAD_REQUEST  unknown status. */
int service_list_runs(const struct service *service, const struct caller *caller,
                      struct run_page *page, error *err);
