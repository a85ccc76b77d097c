/* witness.h - a file of checkpoints that was kept elsewhere, each as it was signed, one after the
 * other (`glovebox serve --log-witness FILE` writes one). The log must go on from every one of
 * them.
 *
 *   See  docs/receipts.md */
#pragma once

#include "ledger/chain.h"

struct witness_note {
    const char *text; /* not ended by NUL */
    size_t size;
    uint64_t records; /* as it says; its signature was not looked at */
};

/* What is looked for in a witness, and compared with what. */
struct witness_order {
    const struct key_chain *chain;
    const struct public_key *key;
    const struct merkle_tree *tree;
    uint64_t records; /* that the log has */
};

/* The next checkpoint of this log at or behind *at, which is moved behind it; those of other logs
 * and what was torn are passed over. False at the end. */
bool witness_next(const struct witness_order *order, const char **at, const char *end,
                  struct witness_note *ret);

/* Does it end with a whole checkpoint? If not, WITNESS_TORN comes before what is added to it: then
 * what was torn is no checkpoint, and takes none with it. */
#define WITNESS_TORN " was torn off\n\n"
bool witness_is_whole(const char *text, size_t size);

/* Does the log go on from this one?
 * Fails  ERR_POLICY  it is not signed by a key of the log, the log has fewer records, or others */
int witness_compare(const struct witness_order *order, const struct witness_note *note, error *err);

/* For the start of a writer: the largest, and the last 256. Gives *ret_count: those of this log.
 * Fails  as witness_compare() */
int witness_check(const struct witness_order *order, const char *text, size_t size,
                  uint64_t *ret_count, error *err);
