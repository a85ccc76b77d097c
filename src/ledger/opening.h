/* opening.h - commitments to inputs and outputs. The log holds these instead of hashes, so that its
 * readers cannot guess short contents.
 *
 *     nonce       MAC(secret, id of the execution)         MAC: keyed BLAKE2b, 32 bytes
 *     key of item MAC(nonce, "outputs/stdout")
 *     commitment  MAC(key of item, "commitment") XOR SHA-256(content)
 *
 * The secret is in a file of mode 0600 next to the log, and never in the log or in a copy of it.
 * The key of an item opens only that item, to its hash. No other key can be found that opens it to
 * the hash of something else.
 *
 *   See  docs/receipts.md, docs/decisions/0096 */
#pragma once

#include "base/bytes.h"

enum {
    OPENING_KEY_SIZE = 32,
    OPENING_HEX_SIZE = 65,
    SEALED_SIZE = 16 * 1024, /* every sealed text is padded to this size */
};

struct opening_key {
    unsigned char bytes[OPENING_KEY_SIZE];
};

/* Reads the secret in `folder`, or makes it. Fails  ERR_UNAVAILABLE  others can read it, or it is
 * damaged. */
int opening_secret_read(int folder, struct opening_key *ret_secret, error *err);

void opening_nonce(const struct opening_key *secret, const char *execution,
                   struct opening_key *ret_nonce);

/* The key of item "GROUP/NAME"; of "GROUP" if `name` is NULL. */
void opening_item(const struct opening_key *nonce, const char *group, const char *name,
                  struct opening_key *ret_key);

/* Converts the hash of the content to the commitment, in hex, and back. */
void opening_mask(const struct opening_key *item, const char *hex, char ret_hex[OPENING_HEX_SIZE]);

/* Adds base64 of the text, padded and encrypted (XSalsa20-Poly1305) with the key of "sealed".
 * Fails  ERR_TOO_LARGE */
int opening_seal(const struct opening_key *nonce, const struct bytes *text, struct bytes *out,
                 error *err);

/* Adds the text. Fails  ERR_POLICY  it was sealed with another key, or changed. */
int opening_unseal(const struct opening_key *nonce, const char *sealed, struct bytes *out,
                   error *err);
