/* service_receipts.h - signed receipts, and proofs about the log that has them. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "engine/service/service.h"

#include <stddef.h>
#include <stdint.h>

enum { LOG_HASH_SIZE = 65 /* in hex, and NUL */, LOG_PROOF_MAX = 128, LOG_KEY_SIZE = 128 };

/* Of inclusion: record `from` is among the first `to` records; `first` is the leaf, `second` the
 * root. Of consistency: the log of `from` records is a prefix of that of `to`; `first` and `second`
 * are their roots. */
struct log_proof {
    uint64_t from, to;
    char first[LOG_HASH_SIZE], second[LOG_HASH_SIZE];
    char hashes[LOG_PROOF_MAX][LOG_HASH_SIZE];
    size_t count;
};

/* Adds the signed envelope. Fails  ERR_NOT_FOUND  also if it is of another tenant. */
int service_receipt(const struct service *service, const struct caller *caller, const char *id,
                    struct bytes *out, error *err);
/* A page of the log: records of the caller's tenant, for the owner all records. */
struct record_page {
    uint64_t cursor, max; /* first index; most rows */
    uint64_t next;        /* set: the cursor of the next page */
    bool has_more;        /* set */
};
int service_list_receipts(const struct service *service, const struct caller *caller,
                          struct record_page *page, struct bytes *out, error *err);
/* Adds the checkpoint of the log. Gives  the proof that the receipt is in it, without `first` and
 * `second`. */
int service_receipt_proof(const struct service *service, const char *id, struct bytes *checkpoint,
                          struct log_proof *ret_proof, error *err);
/* Adds the openings of its commitments. Fails  ERR_NOT_FOUND, ERR_FORBIDDEN, ERR_BAD_REQUEST. */
int service_receipt_opening(const struct service *service, const struct caller *caller,
                            const char *id, struct bytes *out, error *err);

/* Does the log's checkpoint cover *size records? As receipts_cover(); `receipt` (or NULL) is the
 * last of them if *size is 0. */
int service_log_covers(const struct service *service, const char *receipt, uint64_t *size,
                       error *err);
/* Adds the signed size and root of the log. Gives  *ret_size, its records. */
int service_log_checkpoint(const struct service *service, struct bytes *out, uint64_t *ret_size,
                           error *err);

struct log_key {
    const char *id;
    char line[LOG_KEY_SIZE], pem[LOG_KEY_SIZE];
};
void service_log_key(const struct service *service, struct log_key *ret_key);

/* Proofs for proof->from and proof->to. Fails  ERR_BAD_REQUEST  they are beyond the log. */
int service_prove_inclusion(const struct service *service, struct log_proof *proof, error *err);
int service_prove_consistency(const struct service *service, struct log_proof *proof, error *err);
