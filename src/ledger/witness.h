/* witness.h - a file with the signed checkpoints of a log, kept elsewhere (`glovebox serve
 * --log-witness FILE` writes one). The log must be a continuation of every one of them.
 *
 *   See  docs/receipts.md */
#pragma once

#include "ledger/chain.h"

struct witness_note {
    const char *text; /* not ended by NUL */
    size_t size;
    uint64_t records; /* as stated; its signature has not been checked */
};

/* The log to look for in a witness, and to compare with it. */
struct witness_order {
    const struct key_chain *chain;
    const struct public_key *key;
    const struct merkle_tree *tree;
    uint64_t records; /* that the log has */
};

/* Gives the next checkpoint of this log from *at on, and moves *at after it. Skips those of other
 * logs, and incomplete ones. False at the end. */
bool witness_next(const struct witness_order *order, const char **at, const char *end,
                  struct witness_note *ret);

/* Does the file end with a complete checkpoint? If not, WITNESS_TORN must be written before the
 * next one, so that the incomplete one does not spoil it. */
#define WITNESS_TORN " was torn off\n\n"
bool witness_is_whole(const char *text, size_t size);

/* Is the log a continuation of this checkpoint?
 * Fails  ERR_POLICY  not signed by a key of the log, or the log has fewer or other records */
int witness_compare(const struct witness_order *order, const struct witness_note *note, error *err);

/* For the start of a writer: checks the largest and the last 256. Gives *ret_count, those of this
 * log. Fails  as witness_compare() */
int witness_check(const struct witness_order *order, const char *text, size_t size,
                  uint64_t *ret_count, error *err);
