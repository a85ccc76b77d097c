/* statement.h - the words of a receipt: an in-toto Statement v1 whose subjects are what the
 * execution took and made, and whose predicate says how it went.
 *
 *   See  https://github.com/in-toto/attestation, docs/reference/receipt.schema.json */
#pragma once

#include "base/bytes.h"
#include "ledger/facts.h"
#include "ledger/id.h"
#include "ledger/merkle.h"

#define STATEMENT_TYPE "https://in-toto.io/Statement/v1"
#define PREDICATE_RUN  "urn:x-glovebox:receipt:v1"
#define PREDICATE_LOST "urn:x-glovebox:lost:v1"

/* Where a record stands: which log, behind which tree. */
struct statement_place {
    const char *origin;
    struct merkle_head before;
    char id[RECEIPT_ID_SIZE]; /* of the receipt or event */
    int64_t at_ms;            /* since 1970 */
};

/* What one receipt has in common with the one before it, as it was written: zero-filled at first,
 * for one machine, and given back with statement_memory_done(). */
struct statement_memory {
    struct bytes isolation, granted;
    uint64_t walls, degraded; /* of the isolation */
    struct limits limits;     /* that were granted */
};

void statement_memory_done(struct statement_memory *memory);

/* Each adds canonical JSON to `out`. */
int statement_write(const struct receipt_facts *facts, const struct fact_place *machine,
                    const struct statement_place *place, struct bytes *out, error *err);

/* What is noted of an execution when it begins, for the case that no process is left to say how it
 * ended. */
int statement_write_opened(const struct receipt_facts *facts, struct bytes *out, error *err);
int statement_write_lost(const char *opened, size_t opened_size,
                         const struct statement_place *place, struct bytes *out, error *err);

/* An event of the audit log: a kind ("key.created") and words about it. */
struct event_field {
    const char *name;
    const char *text; /* NULL: the number counts */
    int64_t number;
};

/* `fields` end with a name that is NULL. Names are [a-z_]+; values are words, never secrets. */
int statement_write_event(const char *kind, const struct event_field *fields,
                          const struct statement_place *place, struct bytes *out, error *err);
