/* sha256.c - see sha256.h. */
#include "ledger/sha256.h"

#include <sodium.h>

void sha256_begin(struct sha256 *sha)
{
    nettle_sha256_init(&sha->state);
}

void sha256_add(struct sha256 *sha, const void *data, size_t size)
{
    if (size > 0) /* data may be NULL, which nettle's memcpy() must not get */
        nettle_sha256_update(&sha->state, size, data);
}

void sha256_end(struct sha256 *sha, unsigned char ret_hash[SHA256_SIZE])
{
    nettle_sha256_digest(&sha->state, SHA256_SIZE, ret_hash);
}

void sha256_end_text(struct sha256 *sha, char ret_hex[SHA256_TEXT_SIZE])
{
    unsigned char hash[SHA256_SIZE];
    sha256_end(sha, hash);
    (void) sodium_bin2hex(ret_hex, SHA256_TEXT_SIZE, hash, sizeof hash);
}

void sha256_of(const void *data, size_t size, unsigned char ret_hash[SHA256_SIZE])
{
    struct sha256 sha;
    sha256_begin(&sha);
    sha256_add(&sha, data, size);
    sha256_end(&sha, ret_hash);
}

void sha256_text_of(const void *data, size_t size, char ret_hex[SHA256_TEXT_SIZE])
{
    struct sha256 sha;
    sha256_begin(&sha);
    sha256_add(&sha, data, size);
    sha256_end_text(&sha, ret_hex);
}
