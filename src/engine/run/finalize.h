/* finalize.h - the part of a run's end that may take its time, while the run is RUN_GATING.
 *
 * Digests of its output and its results, and its output as JSON: for little of it that is done when
 * it is asked for; for much the thread beside the loop does it first. And another writer of the log
 * may hold it: that is waited for, for 15 seconds at most, before the receipt is written. */
#pragma once

#include "base/bytes.h"
#include "base/clock.h"
#include "engine/run/output_buffer.h"
#include "engine/store/disk_worker.h"
#include "ledger/facts.h"

#include <stdbool.h>

struct run;

struct finalize {
    struct disk_job job;
    struct run *run;
    uv_timer_t look; /* at the log */
    deadline patience;
    void (*told)(struct run *run);
    bool is_done;
    bool has_worked; /* what stands below is there */
    struct fact_output output[2];
    char results[SHA256_TEXT_SIZE];
    struct bytes text[2]; /* JSON */
};

/* Is there something to wait for, and was it not waited for yet? */
bool finalize_is_due(const struct run *run);

/* Nothing of what it has said changes any more. `told` is called on the loop, not from here.
 * Without memory it is done now. */
void finalize_begin(struct run *run, void (*told)(struct run *run));
bool finalize_is_under_way(const struct run *run);
void finalize_free(struct run *run);

/* What was found out, or is found out now. */
void settled_output(const struct run *run, unsigned index, struct fact_output *ret_fact);
void settled_results(const struct run *run, char ret_sha256[SHA256_TEXT_SIZE]);
void settled_text(const struct run *run, unsigned index,
                  struct bytes *out); /* a JSON value, once */
