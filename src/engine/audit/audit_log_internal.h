/* audit_log_internal.h - the log of this daemon, for audit_log.c (the log), receipts.c (what is
 * written to it) and receipt_read.c. */
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
    uv_work_t work; /* brings `in_flight` to disk */
    struct ledger_group in_flight;
    bool is_working;
    error work_failure;
    error trouble; /* why what was written is not on disk; ERR_NONE: it is, or on its way */
    struct witness_output witness;
    struct fact_place machine;
    struct opening_key secret;
    struct statement_memory memory;
    struct statement_place foreseen; /* receipt_presign(); id "": none is */
    char kernel[160];
    char self_test[SHA256_TEXT_SIZE];
    char digests[FILTERS_MAX][SHA256_TEXT_SIZE + 8];
    char *names[FILTERS_MAX];
};

/* Brings what was written to disk with the next group. */
void receipts_sync_soon(struct receipts *receipts);
