/* chain.h - the sequence of keys of a log. Each change of key is an event that names the new key,
 * signed by the old one. The file `key.chain` in the log's folder repeats these records, one in a
 * line: they outlive retention, and a verifier with the first key finds all others.
 *
 *   Threads  none.   See  docs/decisions/0068, docs/receipts.md */
#pragma once

#include "base/bytes.h"
#include "ledger/checkpoint.h"
#include "ledger/key.h"

#include <stdbool.h>

enum { CHAIN_MAX = 128, CHAIN_FILE_MAX = 512 * 1024 };

#define CHAIN_EVENT "log.key_rotated"

struct chain_link {
    uint64_t index; /* of the event, the last record that `from` signs */
    struct public_key from, to;
    struct merkle_hash leaf; /* of the event */
};

/* Signatures by keys before number `min` count only for records under a checkpoint that a later key
 * has signed. */
struct key_chain {
    size_t count, min;
    struct chain_link links[CHAIN_MAX];
};

/* Reads and checks the file; without one the chain is empty.
 * Fails  ERR_POLICY  a line is not signed by the key before it, or out of order. */
int key_chain_read(int folder, struct key_chain *ret_chain, error *err);

/* Is the record a change of key, with a valid signature? Gives  *ret_link. */
bool key_chain_take(const char *record, size_t size, struct chain_link *ret_link);

/* Adds the line of a record to the file, and waits until it is on disk. */
int key_chain_add(int folder, const struct bytes *record, error *err);

/* The number of a key, by its id: 0 for the first. -1: not a key of this log. */
int key_chain_number(const struct key_chain *chain, const char *id);
const struct public_key *key_chain_key(const struct key_chain *chain, size_t number);

/* The number of the key that signs record `index`: a signature by any other is forged. */
size_t key_chain_number_at(const struct key_chain *chain, uint64_t index);
/* The key that signs record `index`; `otherwise` if the chain is empty. */
const struct public_key *key_chain_at(const struct key_chain *chain,
                                      const struct public_key *otherwise, uint64_t index);

/* As checkpoint_read(), with the key that was valid at that number of records; keys before `min`
 * are refused. */
int key_chain_checkpoint(const struct key_chain *chain, const struct public_key *otherwise,
                         const char *text, struct merkle_head *ret_head, error *err);
