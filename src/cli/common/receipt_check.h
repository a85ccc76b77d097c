/* receipt_check.h - is a receipt as it was signed? What `receipt verify` tells and `replay`
 * demands. */
#pragma once

#include "cli/common/log_files.h"
#include "ledger/chain.h"
#include "ledger/verify.h"

/* The key that counts, and the others of the log that follow from it. */
struct receipt_keys {
    struct public_key key;
    bool is_own; /* taken from the log itself */
    struct key_chain chain;
};

/* What has been found out about a receipt. */
struct receipt_standing {
    const struct public_key *signer;
    struct signed_place place;
    uint64_t size;   /* of the checkpoint that it stands under; 0: none was looked at */
    bool is_retired; /* the key that signed it: the log has a later one */
    bool is_vouched; /* the log's newest key has signed a checkpoint over it */
};

/* The key of --key, or of the log.
 * Fails  ERR_NOT_FOUND  none is known */
int receipt_keys_read(const struct log_arguments *arguments, struct receipt_keys *ret_keys,
                      error *err);

/* Checks the signature; the proof that came with it; and its place in the log, where --log names
 * one or the key that signed it was retired.
 * Fails  ERR_POLICY, saying what does not fit */
int receipt_check(const struct log_arguments *arguments, const struct found_receipt *found,
                  const struct receipt_keys *keys, struct receipt_standing *ret_standing,
                  error *err);

/* The same, for a verb that only goes on with a receipt that verifies. Returns 0;
 * RECEIPT_IS_NONE, *err saying why it does not verify; -1 if that cannot be decided. */
int receipt_demand(const struct log_arguments *arguments, const struct found_receipt *found,
                   bool *ret_key_is_own, error *err);

/* Says on stdout that a receipt does not verify, and why. Returns EXIT_DOES_NOT_VERIFY. */
int receipt_print_unverified(bool json, const error *cause);
