/* run_follow.h - what an exchange has with a run: it waits for its end, or tells its events, for as
 * long as the client has patience. */
#pragma once

#include "base/clock.h"
#include "doors/rest/rest.h"
#include "engine/service/service_runs.h"

/* What the client wants of a run that it has begun. RFC 7240: "Prefer: respond-async, wait=10". */
struct preference {
    bool is_async;    /* 202 instead of waiting for the end */
    uint64_t wait_ms; /* but for so long */
};

/* What service_run() and service_watch() are given. A run that the client begins ends when it hangs
 * up, unless it said that it would not wait (Prefer: respond-async) or that it may ask again
 * (Idempotency-Key). */
struct watcher exchange_watcher(struct exchange *exchange, bool begins_run);

/* The exchange has the watch from now on, also when it fails; exchange_tell_run() answers by it. */
int exchange_join(struct exchange *exchange, struct watch *watch, error *err);
/* The same of a run that it has begun. */
int exchange_join_new(struct exchange *exchange, struct watch *watch, error *err);
/* The same for a client that waits until `patience`; then 200 gives the state of the run. */
int exchange_join_until(struct exchange *exchange, struct watch *watch, deadline patience,
                        error *err);

bool exchange_wants_events(const struct exchange *exchange); /* as a stream */

/* Whenever it is called: the result or the events, as the client has asked, or where it stands. */
void exchange_tell_run(struct exchange *exchange);
/* The events from the beginning, or behind the one that the client saw last. */
void exchange_tell_events(struct exchange *exchange);
