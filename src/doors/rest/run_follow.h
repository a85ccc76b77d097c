/* run_follow.h - what an exchange has with a run: it waits for its end, or tells its events, for as
 * long as the client has patience. */
#pragma once

#include "doors/rest/rest.h"
#include "engine/run/run.h"

/* What the client wants of a run that it has begun. RFC 7240: "Prefer: respond-async, wait=10". */
struct preference {
    bool is_async;    /* 202 instead of waiting for the end */
    uint64_t wait_ms; /* but for so long */
};

void preference_read(const struct exchange *exchange, struct preference *ret_preference);

/* As exchange_join_run(), for a client that waits until `patience` (at_ms 0: for as long as it
 * takes); then it is told with `status` where the run stands. */
int exchange_await_run(struct exchange *exchange, struct run *run, deadline patience,
                       unsigned status, error *err);

/* Where a run stands that has not ended. */
void exchange_answer_state(struct exchange *exchange, const struct run *run, unsigned status);

/* Tells, as a result or as the one event that is left, that the run was lost with the daemon before
 * this one. Fails  as lost_runs_result(). */
int exchange_tell_lost(struct exchange *exchange, const char *id, error *err);

/* Tells the events from the beginning, or behind the event that the client saw last. */
void exchange_tell_events(struct exchange *exchange);
