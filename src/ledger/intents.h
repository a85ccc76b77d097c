/* intents.h - the list of open executions: noted before they begin, removed when their receipt is
 * written. What is left after a crash becomes `lost` receipts when the next daemon starts.
 *
 * Each daemon has one file in LOG/open, which it keeps locked while it runs; the kernel drops the
 * lock when it ends. A note is a slot of fixed size, so that a run takes one write at its beginning
 * and one of a few bytes at its end. */
#pragma once

#include "ledger/ledger.h"

struct intents;

enum { INTENT_MAX = 1000 }; /* bytes of a note */

/* Makes this daemon's file. `folder` is the log's folder. */
int intents_open(int folder, struct ledger *ledger, struct intents **ret_intents, error *err);
void intents_close(struct intents *intents); /* removes the file if nothing is open */

struct intent {
    const char *id;             /* "run_…" */
    const struct bytes *opened; /* canonical JSON about it: statement_write_opened() */
    bool is_durable;            /* on disk before intents_note() returns */
};

/* Notes an execution. Gives *ret_slot for intents_strike(). */
int intents_note(struct intents *intents, const struct intent *intent, unsigned *ret_slot,
                 error *err);
void intents_strike(struct intents *intents, unsigned slot);

/* Its receipt could not be written: intents_settle() or the next daemon records it as lost. */
void intents_leave(struct intents *intents, unsigned slot);

/* Writes `lost` receipts for those that were left. Fails  while the log cannot be written. */
int intents_settle(struct intents *intents, error *err);

/* Writes `lost` receipts for open executions of dead daemons. Gives *ret_lost, how many. */
int intents_recover(int folder, struct ledger *ledger, unsigned *ret_lost, error *err);
