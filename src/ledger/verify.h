/* verify.h - verifies a log with only its files and a public key; it uses no daemon, and writes
 * nothing.
 *
 * It hashes every byte of every record, builds the Merkle tree again, and compares it with the
 * stored hashes, with the signed checkpoint, and with a checkpoint that was kept elsewhere. A
 * mismatch is reported with its record. Signatures of single records are checked where no
 * checkpoint covers them, after a mismatch (to find the record), and for all if `every_signature`
 * is set. */
#pragma once

#include "base/bytes.h"
#include "ledger/checkpoint.h"

#include <stdbool.h>

/* Called for each problem: what is wrong ("record 17", "checkpoint", "records 3 to 5"), and why. */
typedef void verify_problem(void *context, const char *what, const char *why);

struct verify_order {
    int folder; /* of the log */
    const struct public_key *key;
    const char *kept;    /* a checkpoint from elsewhere; NULL: none */
    const char *witness; /* a file of checkpoints from elsewhere (witness.h); NULL: none */
    size_t witness_size;
    bool every_signature;
    unsigned workers; /* parallel processes; 0: one */
    verify_problem *problem;
    void *context;
};

struct verify_report {
    uint64_t first, size;   /* records first … size-1 exist */
    uint64_t covered, kept; /* records covered by the log's checkpoint; by the one that was kept */
    uint64_t signatures,
        trimmed; /* how many were checked; first record that retention has kept, by its event */
    uint64_t bytes;
    uint64_t witnessed; /* checkpoints of this log that the witness has */
    uint64_t problems;
    uint64_t unfit;  /* of these, given files that do not belong to this log */
    uint64_t forged; /* records without a signature by the key, or by later keys */
};

/* Returns 0 if it could check everything, also if it has found problems: ret_report->problems. */
int log_verify(const struct verify_order *order, struct verify_report *ret_report, error *err);

/* Reads from a payload its position in the log. False: it has none. */
struct signed_place {
    uint64_t index;
    struct merkle_hash root_before;
};
bool payload_place(const struct bytes *payload, struct signed_place *ret_place);
