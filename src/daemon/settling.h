/* settling.h - the part of a run's end that takes as long as it has said much: digests of its
 * output and its results, and its output as JSON. For little of it that is done when it is asked
 * for; for much the thread beside the loop does it first, while the run is RUN_GATING. */
#pragma once

#include "daemon/beside.h"
#include "daemon/bytes.h"
#include "daemon/output.h"
#include "receipt/facts.h"

#include <stdbool.h>

struct run;

struct settling {
    struct beside_job job;
    struct run *run;
    void (*told)(struct run *run);
    bool is_done;
    struct fact_output output[2];
    char results[SHA256_TEXT_SIZE];
    struct bytes text[2]; /* JSON */
};

/* Has it said so much that this is done beside, and is it not done yet? */
bool settling_is_due(const struct run *run);

/* Nothing of what it has said changes any more. `told` is called on the loop, not from here.
 * Without memory it is done now. */
void settling_begin(struct run *run, void (*told)(struct run *run));
bool settling_is_under_way(const struct run *run);
void settling_free(struct run *run);

/* What was found out, or is found out now. */
void settled_output(const struct run *run, unsigned index, struct fact_output *ret_fact);
void settled_results(const struct run *run, char ret_sha256[SHA256_TEXT_SIZE]);
void settled_text(const struct run *run, unsigned index, struct bytes *out); /* a JSON value */
