/* key.h - the key that signs receipts, audit records and checkpoints (Ed25519), and its public
 * half.
 *
 * The secret is stored only in a file of mode 0600 that belongs to gloveboxd's user. The public
 * half is printed as a verifier key of the C2SP signed-note format, NAME+HASH+BASE64, and as PEM
 * for other tools.
 *
 *   See  https://c2sp.org/signed-note, RFC 8032, RFC 8410 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

enum {
    PUBLIC_KEY_SIZE = 32,
    SECRET_KEY_SIZE = 64,
    SIGNATURE_SIZE = 64,
    KEY_ID_SIZE = 65,   /* SHA-256 of the public key in hex, and the end */
    KEY_NAME_SIZE = 26, /* "glovebox/", 16 hex digits and the end */
    KEY_LABEL_SIZE = 21,
    KEY_TEXT_SIZE = 128,
    KEY_FILE_MAX = 4096,
};

struct public_key {
    unsigned char bytes[PUBLIC_KEY_SIZE];
    char id[KEY_ID_SIZE];
    char label[KEY_LABEL_SIZE]; /* for people: "key", and the beginning of the id */
    char name[KEY_NAME_SIZE];   /* origin of the log: the same for all its keys */
    bool is_bare;               /* read from PEM, so it has no name */
    unsigned char note_hash[4]; /* identifies it in a signed note */
};

struct signing_key {
    unsigned char secret[SECRET_KEY_SIZE];
    struct public_key public;
};

/* Reads the key in `folder`, or makes it (the caller holds the lock): `key`, 0600, and `key.pub`.
 * Fails  ERR_UNAVAILABLE  for a key that others may read, or that is damaged. */
int key_open(int folder, struct signing_key *ret_key, error *err);
/* The next key is stored in `key.next` until the log has recorded the change: if the process dies
 * meanwhile, the log goes on with one of the two. key_find_next() returns 1 if there is one. */
int key_make_next(int folder, struct signing_key *ret_key, error *err);
int key_find_next(int folder, struct signing_key *ret_key, error *err);
int key_take_next(int folder, const struct public_key *key, error *err);
void key_drop_next(int folder);

void key_forget(struct signing_key *key); /* overwrites it */

/* Derives the rest from the bytes and the name; NULL: the name of a log with this as first key. */
void public_key_fill(struct public_key *key, const char *name);

/* Reads a verifier key or PEM. Fails  ERR_BAD_REQUEST. */
int public_key_read(const char *text, struct public_key *ret_key, error *err);
void public_key_print(const struct public_key *key, char ret_text[KEY_TEXT_SIZE]); /* no newline */
void public_key_print_pem(const struct public_key *key, char ret_text[KEY_TEXT_SIZE]);
