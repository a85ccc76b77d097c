/* sha256.h - SHA-256 by processor instructions, where they exist.
 *
 * nettle selects them when the program starts, also on arm64; elsewhere it uses its assembler or C
 * code. libsodium's SHA-256 is always portable C, and took half of the time of a large result. */
#pragma once

#include <nettle/sha2.h>
#include <stddef.h>

enum { SHA256_SIZE = SHA256_DIGEST_SIZE, SHA256_TEXT_SIZE = 2 * SHA256_SIZE + 1 };

struct sha256 {
    struct sha256_ctx state;
};

void sha256_begin(struct sha256 *sha);
void sha256_add(struct sha256 *sha, const void *data, size_t size);

/* Both finish the hash, and begin a new one. */
void sha256_end(struct sha256 *sha, unsigned char ret_hash[SHA256_SIZE]);
void sha256_end_text(struct sha256 *sha, char ret_hex[SHA256_TEXT_SIZE]);

void sha256_of(const void *data, size_t size, unsigned char ret_hash[SHA256_SIZE]);
void sha256_text_of(const void *data, size_t size, char ret_hex[SHA256_TEXT_SIZE]);
