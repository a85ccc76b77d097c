/* finalize.h - the slow part of the end of a run, in the state RUN_GATING.
 *
 * It computes digests of output and results, and the output as JSON: small ones when they are
 * needed, large ones on a thread beside the loop first. It also waits, for at most 15 seconds,
 * while another writer holds the log, before the receipt is written. */
#pragma once

#include "base/bytes.h"
#include "base/clock.h"
#include "engine/store/disk_worker.h"
#include "ledger/facts.h"

#include <stdbool.h>

struct run;

struct finalize {
    struct disk_job job;
    struct run *run;
    uv_timer_t look; /* polls the log */
    deadline patience;
    void (*told)(struct run *run);
    bool is_done;
    bool has_worked; /* the members below are set */
    struct fact_output output[2];
    char results[SHA256_TEXT_SIZE];
    struct bytes text[2]; /* JSON */
};

/* True if there is something to wait for, which was not waited for yet. */
bool finalize_is_due(const struct run *run);

/* Begins; the output and results must not change any more. `told` is called later, by the loop.
 * Without memory it is done at once. */
void finalize_begin(struct run *run, void (*told)(struct run *run));
bool finalize_is_under_way(const struct run *run);
void finalize_free(struct run *run);

/* The results, which are computed now if they are not there. */
void settled_output(const struct run *run, unsigned index, struct fact_output *ret_fact);
void settled_results(const struct run *run, char ret_sha256[SHA256_TEXT_SIZE]);
void settled_text(const struct run *run, unsigned index,
                  struct bytes *out); /* a JSON value, once */
