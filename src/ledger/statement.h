/* statement.h - the contents of a receipt: an in-toto Statement v1 whose subjects are the inputs
 * and outputs of the execution, and whose predicate describes the execution.
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

/* The position of a record: its log, and the tree before it. */
struct statement_place {
    const char *origin;
    struct merkle_head before;
    char id[RECEIPT_ID_SIZE]; /* of the receipt or event */
    int64_t at_ms;            /* since 1970 */
};

/* Cached JSON of parts that are mostly the same in the next receipt. Zero-filled at first, for one
 * machine, and freed with statement_memory_done(). */
struct statement_memory {
    struct bytes isolation, granted;
    uint64_t walls, degraded; /* those of `isolation` */
    struct limits limits;     /* those of `granted` */
};

void statement_memory_done(struct statement_memory *memory);

/* Each adds canonical JSON to `out`. */
int statement_write(const struct receipt_facts *facts, const struct fact_place *machine,
                    const struct statement_place *place, struct bytes *out, error *err);

/* The note about an execution that begins, and the `lost` receipt that is made of it if the daemon
 * dies before the end. */
int statement_write_opened(const struct receipt_facts *facts, struct bytes *out, error *err);
int statement_write_lost(const char *opened, size_t opened_size,
                         const struct statement_place *place, struct bytes *out, error *err);

/* An event of the audit log has a kind ("key.created") and fields. */
struct event_field {
    const char *name;
    const char *text; /* NULL: `number` is the value */
    int64_t number;
};

/* `fields` end with a NULL name. Names are [a-z_]+; values must not be secrets. */
int statement_write_event(const char *kind, const struct event_field *fields,
                          const struct statement_place *place, struct bytes *out, error *err);
