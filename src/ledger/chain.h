/* chain.h - the keys of a log one after another: each change is an event, signed by the key that
 * goes, which names the one that comes. The file `key.chain` in the log's folder has these records
 * once more, one a line, so that they outlive retention and a verifier with the first key finds the
 * others.
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

/* Keys before number `least` are not believed by their own word: what they have signed counts only
 * where a later key has signed a checkpoint over it. */
struct key_chain {
    size_t count, min;
    struct chain_link links[CHAIN_MAX];
};

/* Reads and checks the file; without one the chain is empty.
 * Fails  ERR_POLICY  a line is not signed by the key before it, or out of order. */
int key_chain_read(int folder, struct key_chain *ret_chain, error *err);

/* Is it an event that changes the key? Gives  *ret_link, its signature checked. */
bool key_chain_take(const char *record, size_t size, struct chain_link *ret_link);

/* Adds a record's line to the file, on disk when it returns. */
int key_chain_add(int folder, const struct bytes *record, error *err);

/* The number of a key, by its id: 0 for the first. -1: none of this log's. */
int key_chain_number(const struct key_chain *chain, const char *id);
const struct public_key *key_chain_key(const struct key_chain *chain, size_t number);

/* The number of the key that signs record `index`: a signature by any other is forged. */
size_t key_chain_number_at(const struct key_chain *chain, uint64_t index);
/* The key that signs record `index`; `otherwise` if the chain is empty. */
const struct public_key *key_chain_at(const struct key_chain *chain,
                                      const struct public_key *otherwise, uint64_t index);

/* As checkpoint_read(), by whichever key was in force when so many records were there, from `least`
 * on. */
int key_chain_checkpoint(const struct key_chain *chain, const struct public_key *otherwise,
                         const char *text, struct merkle_head *ret_head, error *err);
