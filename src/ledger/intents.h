/* intents.h - executions that have begun: noted before they begin, struck out when their receipt is
 * written. What a dead daemon has left here becomes `lost` receipts at the next start of any.
 *
 * Each daemon has one file in LOG/open, which it keeps locked for as long as it lives; the kernel
 * unlocks it with the last breath. A note lies in a slot of fixed size, so a run costs one write at
 * its beginning and one of a few bytes at its end. */
#pragma once

#include "ledger/ledger.h"

struct intents;

enum { INTENT_MAX = 1000 }; /* bytes of a note */

/* Makes this daemon's file in `folder`, that of the log. */
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

/* Writes `lost` receipts for what was left. Fails  the log does not take them yet. */
int intents_settle(struct intents *intents, error *err);

/* Writes `lost` receipts for what dead daemons have left open. Gives *ret_lost, how many. */
int intents_recover(int folder, struct ledger *ledger, unsigned *ret_lost, error *err);
