/* verify.h - checks a log by its files and a public key alone; no daemon is asked, nothing is
 * written.
 *
 * Every byte of every record is hashed, the Merkle tree built again and compared: with the hashes
 * that the log stores, with its signed checkpoint, and with a checkpoint that was kept. A
 * mismatch is reported with its record. Signatures of single records are checked where no
 * checkpoint vouches for them, where something does not fit (to name the record), and everywhere if
 * that is asked for. */
#pragma once

#include "base/bytes.h"
#include "ledger/checkpoint.h"

#include <stdbool.h>

/* Told of each thing that is wrong: what it is ("record 17", "checkpoint", "records 3 to 5"), and
 * why. */
typedef void verify_problem(void *context, const char *what, const char *why);

struct verify_order {
    int folder; /* of the log */
    const struct public_key *key;
    const char *kept;    /* a checkpoint from elsewhere; NULL: none */
    const char *witness; /* a file of checkpoints from elsewhere (witness.h); NULL: none */
    size_t witness_size;
    bool every_signature;
    unsigned workers; /* processes that hash side by side; 0: one */
    verify_problem *problem;
    void *context;
};

struct verify_report {
    uint64_t first, size;   /* records first … size-1 are there */
    uint64_t covered, kept; /* by the log's checkpoint; by the one that was kept */
    uint64_t signatures,
        trimmed; /* how many were checked; first record that retention says it kept */
    uint64_t bytes;
    uint64_t witnessed; /* checkpoints of this log that the witness has */
    uint64_t problems;
    uint64_t unfit;  /* of them: files that were given and are none for this log */
    uint64_t forged; /* records that the key, or the keys that it leads to, did not sign */
};

/* Returns 0 when it could look at everything, whatever it found; see ret_report->problems. */
int log_verify(const struct verify_order *order, struct verify_report *ret_report, error *err);

/* What a payload says of its place. False if it does not. */
struct signed_place {
    uint64_t index;
    struct merkle_hash root_before;
};
bool payload_place(const struct bytes *payload, struct signed_place *ret_place);
