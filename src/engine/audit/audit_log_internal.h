/* audit_log_internal.h - shared by audit_log.c (the log), receipts.c (writes to it) and
 * receipt_read.c. */
#pragma once

#include "engine/audit/audit_log.h"
#include "engine/audit/witness_output.h"
#include "ledger/intents.h"

struct receipts {
    struct ledger *ledger;
    struct intents *intents;
    int folder;
    bool is_durable;
    uv_timer_t group;
    uv_work_t work; /* syncs and publishes `in_flight`, deletes old segments */
    struct ledger_group in_flight;
    bool is_working;
    uint64_t trim_to; /* set between groups: the next deletes segments before it; 0: none */
    error work_failure;
    error trouble; /* why records are not on disk; ERR_NONE: they are, or soon will be */
    struct witness_output witness;
    struct fact_place machine;
    struct opening_key secret;
    struct statement_memory memory;
    char kernel[160];
    char self_test[SHA256_TEXT_SIZE];
    char digests[FILTERS_MAX][SHA256_TEXT_SIZE + 8];
    char *names[FILTERS_MAX];
};

/* Writes new records to disk with the next group. */
void receipts_sync_soon(struct receipts *receipts);
