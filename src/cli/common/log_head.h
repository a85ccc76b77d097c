/* log_head.h - reads the hashes and the signed checkpoint of a log from its folder. */
#pragma once

#include "ledger/checkpoint.h"
#include "ledger/merkle.h"

/* A `read` of struct merkle_tree; `context` points at the descriptor of the file "tree". */
int log_hash_read(void *context, uint64_t position, struct merkle_hash *ret, error *err);

/* A signed checkpoint: its text, and its contents. */
struct signed_head {
    char *text;
    struct merkle_head head;
};

void signed_head_done(struct signed_head *signed_head);

#define auto_signed_head __attribute__((cleanup(signed_head_done))) struct signed_head

/* The checkpoint of the log in `folder`, signed by `key` or one of the keys that follow it.
 * Fails  ERR_POLICY  it was changed, or signed by another key */
int log_checkpoint_read(int folder, const struct public_key *key, struct signed_head *ret,
                        error *err);
