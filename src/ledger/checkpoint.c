/* checkpoint.c - writes checkpoints in one form; reads any signed note that holds a checkpoint. */
#include "ledger/checkpoint.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DASH "\xE2\x80\x94"

enum {
    BODY_SIZE = 192,
    SIGNED_SIZE = 4 + SIGNATURE_SIZE,
    SIGNED_TEXT_SIZE = 96,
    SIGNATURES_MAX = 100,
};

static size_t print_body(const struct public_key *key, const struct merkle_head *head,
                         char body[BODY_SIZE])
{
    char root[64];
    (void) sodium_bin2base64(root, sizeof root, head->root.bytes, sizeof head->root.bytes,
                             sodium_base64_VARIANT_ORIGINAL);
    return (size_t) snprintf(body, BODY_SIZE, "%s\n%" PRIu64 "\n%s\n", key->name, head->size, root);
}

void checkpoint_print(const struct signing_key *key, const struct merkle_head *head,
                      char ret_text[CHECKPOINT_SIZE])
{
    char body[BODY_SIZE];
    unsigned char signature[SIGNATURE_SIZE];
    size_t size = print_body(&key->public, head, body);
    (void) crypto_sign_detached(signature, NULL, (const unsigned char *) body, size, key->secret);
    unsigned char whole[SIGNED_SIZE];
    char base64[SIGNED_TEXT_SIZE];
    memcpy(whole, key->public.note_hash, 4);
    memcpy(whole + 4, signature, SIGNATURE_SIZE);
    (void) sodium_bin2base64(base64, sizeof base64, whole, sizeof whole,
                             sodium_base64_VARIANT_ORIGINAL);
    (void) snprintf(ret_text, CHECKPOINT_SIZE, "%s\n" DASH " %s %s\n", body, key->public.name,
                    base64);
}

/* sodium_base642bin() 1.0.18 accepts some bytes above 0x7F as digits. */
static bool decode(const char *text, size_t size, unsigned char *into, size_t room,
                   size_t *ret_size)
{
    const char *end = NULL;
    for (size_t i = 0; i < size; i++)
        if ((unsigned char) text[i] >= 0x80)
            return false;
    return sodium_base642bin(into, room, text, size, NULL, ret_size, &end,
                             sodium_base64_VARIANT_ORIGINAL) == 0 &&
           end == text + size;
}

/* Origin, size and root; further lines are extensions. */
struct body {
    const char *origin;
    size_t origin_size, size;
    struct merkle_head head;
};

static bool read_body(const char *text, size_t body_size, struct body *ret)
{
    size_t length = 0;
    const char *size = strchr(text, '\n');
    if (!size || size[1] < '0' || size[1] > '9' || (size[1] == '0' && size[2] != '\n'))
        return false;
    char *root = NULL;
    *ret = (struct body){ text, (size_t) (size - text), body_size, { 0 } };
    ret->head.size = strtoull(size + 1, &root, 10);
    const char *end = *root == '\n' ? strchr(root + 1, '\n') : NULL;
    return end && end < text + body_size &&
           decode(root + 1, (size_t) (end - root - 1), ret->head.root.bytes, MERKLE_HASH_SIZE,
                  &length) &&
           length == MERKLE_HASH_SIZE;
}

enum { SIGNATURE_IS_OTHERS, SIGNATURE_IS_GOOD, SIGNATURE_IS_WRONG, SIGNATURE_IS_NONE };

/* Reads a line: DASH, name, base64 of four bytes that identify the key, and the signature. */
static int read_signature(const char *line, size_t size, const char *text, const struct body *body,
                          const struct public_key *key)
{
    unsigned char whole[SIGNED_SIZE];
    size_t length = 0, name_size = strlen(key->name);
    const char *name = line + sizeof DASH; /* and the blank */
    if (size < sizeof DASH || memcmp(line, DASH " ", sizeof DASH) != 0)
        return SIGNATURE_IS_NONE;
    const char *blank = memchr(name, ' ', size - sizeof DASH);
    if (!blank || blank == name)
        return SIGNATURE_IS_NONE;
    size_t rest = size - (size_t) (blank + 1 - line);
    if ((size_t) (blank - name) != name_size || memcmp(name, key->name, name_size) != 0 ||
        !decode(blank + 1, rest, whole, sizeof whole, &length) || length != SIGNED_SIZE ||
        memcmp(whole, key->note_hash, sizeof key->note_hash) != 0)
        return SIGNATURE_IS_OTHERS;
    return crypto_sign_verify_detached(whole + 4, (const unsigned char *) text, body->size,
                                       key->bytes) == 0
               ? SIGNATURE_IS_GOOD
               : SIGNATURE_IS_WRONG;
}

static int read_signatures(const char *text, const struct body *body, const struct public_key *key)
{
    int found = SIGNATURE_IS_OTHERS;
    unsigned count = 0;
    for (const char *line = text + body->size + 1; *line; count++) {
        const char *end = strchr(line, '\n');
        int one = end && count < SIGNATURES_MAX
                      ? read_signature(line, (size_t) (end - line), text, body, key)
                      : SIGNATURE_IS_NONE;
        if (one > found)
            found = one;
        if (one == SIGNATURE_IS_NONE)
            return one;
        line = end + 1;
    }
    return count > 0 ? found : SIGNATURE_IS_NONE;
}

int checkpoint_read(const char *text, const struct public_key *key, struct merkle_head *ret_head,
                    error *err)
{
    struct body body;
    struct public_key named = *key;
    const char *split = strlen(text) <= CHECKPOINT_NOTE_MAX ? strstr(text, "\n\n") : NULL;
    bool is_one = split && read_body(text, (size_t) (split + 1 - text), &body);
    if (is_one && key->is_bare && body.origin_size < sizeof named.name) {
        char name[KEY_NAME_SIZE];
        (void) snprintf(name, sizeof name, "%.*s", (int) body.origin_size, body.origin);
        public_key_fill(&named, name);
    }
    int found = is_one ? read_signatures(text, &body, &named) : SIGNATURE_IS_NONE;
    if (found == SIGNATURE_IS_NONE)
        return fail(err, ERR_BAD_REQUEST,
                    "no signed checkpoint: its lines are not those of a signed note");
    if (found != SIGNATURE_IS_GOOD)
        return fail(err, ERR_POLICY,
                    "the checkpoint's signature does not fit: it was changed, or signed by another "
                    "key than %s",
                    key->label);
    if (body.origin_size != strlen(named.name) ||
        memcmp(body.origin, named.name, body.origin_size) != 0)
        return fail(err, ERR_POLICY, "the checkpoint is one of another log than %s", named.name);
    *ret_head = body.head;
    return 0;
}
