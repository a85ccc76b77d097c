/* receipt_check.h - verifies a receipt, for `receipt verify` and `replay`. */
#pragma once

#include "cli/common/log_files.h"
#include "ledger/chain.h"
#include "ledger/verify.h"

/* The given key, and the keys of the log that follow it. */
struct receipt_keys {
    struct public_key key;
    bool is_own; /* read from the log itself */
    struct key_chain chain;
};

/* What is known about a receipt. */
struct receipt_standing {
    const struct public_key *signer;
    struct signed_place place;
    uint64_t size;   /* of the checkpoint that covers it; 0: none was checked */
    bool is_retired; /* the log has a later key than the one that signed it */
    bool is_vouched; /* the log's newest key has signed a checkpoint that covers it */
};

/* The key of --key, or of the log.
 * Fails  ERR_NOT_FOUND  none is known */
int receipt_keys_read(const struct log_arguments *arguments, struct receipt_keys *ret_keys,
                      error *err);

/* Checks the signature, the proof that came with it, and its position in the log, if --log is given
 * or the key that signed it was retired.
 * Fails  ERR_POLICY  with what does not match */
int receipt_check(const struct log_arguments *arguments, const struct found_receipt *found,
                  const struct receipt_keys *keys, struct receipt_standing *ret_standing,
                  error *err);

/* The same, for a verb that needs a valid receipt. Returns 0; RECEIPT_IS_NONE, with *err, if it
 * does not verify; -1 if that is not known. */
int receipt_demand(const struct log_arguments *arguments, const struct found_receipt *found,
                   bool *ret_key_is_own, error *err);

/* Prints on stdout that a receipt does not verify, and why. Returns EXIT_DOES_NOT_VERIFY. */
int receipt_print_unverified(bool json, const error *cause);
