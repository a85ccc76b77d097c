/* run_follow.h - answers a request about a run: waits for its end, or sends its events, as long as
 * the client waits. */
#pragma once

#include "base/clock.h"
#include "doors/rest/rest.h"
#include "engine/service/service_runs.h"

/* How the client wants the answer. RFC 7240: "Prefer: respond-async, wait=10". */
struct preference {
    bool is_async;    /* answer 202 before the end */
    uint64_t wait_ms; /* after so long */
};

/* The watcher for service_run() and service_watch(). A run that the client begins is cancelled when
 * it hangs up, unless the client does not wait (Prefer: respond-async) or may ask again
 * (Idempotency-Key). */
struct watcher exchange_watcher(struct exchange *exchange, bool begins_run);

/* Takes the watch, also on failure; exchange_tell_run() answers by it. */
int exchange_join(struct exchange *exchange, struct watch *watch, error *err);
/* The same for a run that this request has begun. */
int exchange_join_new(struct exchange *exchange, struct watch *watch, error *err);
/* The same for a client that waits until `patience`; then 200 gives the state of the run. */
int exchange_join_until(struct exchange *exchange, struct watch *watch, deadline patience,
                        error *err);

bool exchange_wants_events(const struct exchange *exchange); /* by its Accept header or query */

/* Answers whenever it is called: the result or the events, as the client wants, or the state. */
void exchange_tell_run(struct exchange *exchange);
/* Sends the events from the beginning, or from the last that the client has seen. */
void exchange_tell_events(struct exchange *exchange);
