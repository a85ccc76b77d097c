/* service_receipts.h - signed receipts, and proofs of the log that they stand in. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "engine/service/service.h"

#include <stddef.h>
#include <stdint.h>

enum { LOG_HASH_SIZE = 65 /* in hex, and the end */, LOG_PROOF_MAX = 128, LOG_KEY_SIZE = 128 };

/* Of inclusion: record `from` is among the first `to`; first is the leaf, second the root.
 * Of consistency: the log of `from` records is the beginning of that of `to`; first and second are
 * their roots. */
struct log_proof {
    uint64_t from, to;
    char first[LOG_HASH_SIZE], second[LOG_HASH_SIZE];
    char hashes[LOG_PROOF_MAX][LOG_HASH_SIZE];
    size_t count;
};

/* Adds the signed envelope. Fails  ERR_NOT_FOUND  also for one of another tenant. */
int service_receipt(const struct service *service, const struct caller *caller, const char *id,
                    struct bytes *out, error *err);
/* A page of the log: what the caller's tenant may see, the owner all of it, in its order. */
struct record_page {
    uint64_t cursor, max; /* index that it begins at; rows */
    uint64_t next;        /* set: the cursor of what follows */
    bool has_more;        /* set */
};
int service_list_receipts(const struct service *service, const struct caller *caller,
                          struct record_page *page, struct bytes *out, error *err);
/* Adds the checkpoint of the log. Gives  the proof that the receipt stands in it, without its first
 * and second. */
int service_receipt_proof(const struct service *service, const char *id, struct bytes *checkpoint,
                          struct log_proof *ret_proof, error *err);
/* Adds what opens its commitments. Fails  ERR_NOT_FOUND, ERR_FORBIDDEN, ERR_BAD_REQUEST. */
int service_receipt_opening(const struct service *service, const struct caller *caller,
                            const char *id, struct bytes *out, error *err);

/* Adds the signed size and root of the log. Gives  *ret_size, its records. */
int service_log_checkpoint(const struct service *service, struct bytes *out, uint64_t *ret_size,
                           error *err);

struct log_key {
    const char *id;
    char line[LOG_KEY_SIZE], pem[LOG_KEY_SIZE];
};
void service_log_key(const struct service *service, struct log_key *ret_key);

/* Prove what proof->from and proof->to say. Fails  ERR_BAD_REQUEST  if they are beyond the log. */
int service_prove_inclusion(const struct service *service, struct log_proof *proof, error *err);
int service_prove_consistency(const struct service *service, struct log_proof *proof, error *err);
