/* checkpoint.c - what is read must print as it was written, the signature included. */
#include "receipt/checkpoint.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DASH "\xE2\x80\x94"

enum { BODY_SIZE = 192, SIGNED_SIZE = 4 + SIGNATURE_SIZE, SIGNED_TEXT_SIZE = 96 };

static size_t print_body(const struct public_key *key, const struct merkle_head *head,
                         char body[BODY_SIZE])
{
    char root[64];
    (void) sodium_bin2base64(root, sizeof root, head->root.bytes, sizeof head->root.bytes,
                             sodium_base64_VARIANT_ORIGINAL);
    return (size_t) snprintf(body, BODY_SIZE, "%s\n%" PRIu64 "\n%s\n", key->name, head->size, root);
}

static void print_signed(const struct public_key *key, const char *body,
                         const unsigned char signature[SIGNATURE_SIZE],
                         char ret_text[CHECKPOINT_SIZE])
{
    unsigned char whole[SIGNED_SIZE];
    char base64[SIGNED_TEXT_SIZE];
    memcpy(whole, key->note_hash, 4);
    memcpy(whole + 4, signature, SIGNATURE_SIZE);
    (void) sodium_bin2base64(base64, sizeof base64, whole, sizeof whole,
                             sodium_base64_VARIANT_ORIGINAL);
    (void) snprintf(ret_text, CHECKPOINT_SIZE, "%s\n" DASH " %s %s\n", body, key->name, base64);
}

void checkpoint_print(const struct signing_key *key, const struct merkle_head *head,
                      char ret_text[CHECKPOINT_SIZE])
{
    char body[BODY_SIZE];
    unsigned char signature[SIGNATURE_SIZE];
    size_t size = print_body(&key->public, head, body);
    (void) crypto_sign_detached(signature, NULL, (const unsigned char *) body, size, key->secret);
    print_signed(&key->public, body, signature, ret_text);
}

static bool read_head(const char *text, struct merkle_head *ret_head)
{
    const char *size = strchr(text, '\n');
    if (!size || size[1] < '0' || size[1] > '9')
        return false;
    char *root = NULL;
    ret_head->size = strtoull(size + 1, &root, 10);
    if (*root != '\n')
        return false;
    const char *end = strchr(++root, '\n');
    size_t length = 0;
    return end &&
           sodium_base642bin(ret_head->root.bytes, MERKLE_HASH_SIZE, root, (size_t) (end - root),
                             NULL, &length, NULL, sodium_base64_VARIANT_ORIGINAL) == 0 &&
           length == MERKLE_HASH_SIZE;
}

int checkpoint_read(const char *text, const struct public_key *key, struct merkle_head *ret_head,
                    error *err)
{
    struct merkle_head head;
    unsigned char whole[SIGNED_SIZE];
    size_t length = 0;
    const char *mark = strstr(text, "\n\n" DASH " ");
    const char *base64 = mark ? strrchr(mark, ' ') : NULL;
    if (strlen(text) >= CHECKPOINT_SIZE || !base64 || !read_head(text, &head) ||
        sodium_base642bin(whole, sizeof whole, base64 + 1, strcspn(base64 + 1, "\n"), NULL, &length,
                          NULL, sodium_base64_VARIANT_ORIGINAL) != 0 ||
        length != SIGNED_SIZE)
        return fail(err, ERR_BAD_REQUEST,
                    "no signed checkpoint: its lines are not as they were written");
    char body[BODY_SIZE], again[CHECKPOINT_SIZE];
    size_t size = print_body(key, &head, body);
    print_signed(key, body, whole + 4, again);
    if (crypto_sign_verify_detached(whole + 4, (const unsigned char *) body, size, key->bytes) != 0)
        return fail(err, ERR_POLICY,
                    "the checkpoint's signature does not fit: it was changed, or signed by another "
                    "key than %s",
                    key->name);
    if (strcmp(text, again) != 0)
        return fail(err, ERR_POLICY, "the checkpoint is not spelled as it was signed");
    *ret_head = head;
    return 0;
}
