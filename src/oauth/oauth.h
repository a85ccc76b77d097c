/* oauth.h - access tokens of one authorization server that the operator trusts (RFC 9068, RFC
 * 9728): a client may send one in place of an API key.
 *
 * gloveboxd makes no connections: the server's keys are in a file (RFC 7517), which is read again
 * when it has changed. Keys that a token names (jku, jwk, x5u, x5c) are ignored, and each algorithm
 * needs a kind of key: `none` and HMAC have none. */
#pragma once

#include "base/error.h"
#include "keys/key.h"

#include <gnutls/abstract.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OAUTH_URL_SIZE = 256,
    OAUTH_PATH_SIZE = 512,
    OAUTH_KEYS_MAX = 32,
    OAUTH_KEY_ID_SIZE = 128,
    OAUTH_SUBJECT_SIZE = 256
};

/* The scopes that a token may give; approving and administration need an API key. */
enum { OAUTH_SCOPES = SCOPE_RUN | SCOPE_SESSIONS | SCOPE_AUDIT };

enum oauth_kind { OAUTH_RSA, OAUTH_P256, OAUTH_ED25519 };

struct oauth_key {
    enum oauth_kind kind;
    char id[OAUTH_KEY_ID_SIZE]; /* "": none */
    char algorithm[16];         /* the only algorithm it may be used with; "": any of its kind */
    gnutls_pubkey_t key;
};

struct oauth_keys {
    struct oauth_key list[OAUTH_KEYS_MAX];
    size_t count;
};

struct oauth {
    char issuer[OAUTH_URL_SIZE];   /* "": no tokens are accepted */
    char audience[OAUTH_URL_SIZE]; /* the URL of this service */
    char path[OAUTH_PATH_SIZE];    /* of the file of keys */
    struct oauth_keys keys;
    error failure;      /* why the file cannot be used; code ERR_NONE: it can */
    int64_t looked_ms;  /* when the file was last checked; 0: never */
    int64_t changed_ns; /* its time of change then */
    uint64_t inode, size;
};

struct oauth_token {
    char subject[OAUTH_SUBJECT_SIZE];
    uint32_t scopes;                      /* of OAUTH_SCOPES */
    char policies[API_KEY_POLICIES_SIZE]; /* names of the only policies it may use; "": all */
    int64_t expires_s;
};

/* Takes settings that were checked already. */
void oauth_configure(struct oauth *oauth, const char *issuer, const char *audience,
                     const char *path);
void oauth_done(struct oauth *oauth);
bool oauth_is_configured(const struct oauth *oauth);

/* Checks the file of keys, at most once a second. True: it cannot be used, and the cause is new. */
bool oauth_look(struct oauth *oauth);

/* True if the text has the form of such a token, and not that of an API key. */
bool oauth_is_token(const char *text);

/* Fails  ERR_UNAUTHORIZED  with what is wrong with the token. */
int oauth_check(struct oauth *oauth, const char *text, struct oauth_token *ret_token, error *err);

/* The same, as an API key: id and tenant are derived from issuer and subject. */
int oauth_identify(struct oauth *oauth, const char *text, struct api_key *ret_key, error *err);

/* Prints "glovebox:run glovebox:sessions", the names of scopes in tokens. */
void oauth_scopes_print(uint32_t scopes, char *text, size_t size);

/* jwks.c: gives the keys of a set that may check signatures. Fails  ERR_BAD_REQUEST. */
int oauth_keys_read(const char *json, size_t size, struct oauth_keys *ret_keys, error *err);
void oauth_keys_done(struct oauth_keys *keys);

/* signature.c: checks that one of these keys made the signature. `id` NULL: the token names no key.
 * Fails  ERR_UNAUTHORIZED. */
struct oauth_signed {
    const char *algorithm, *id;
    const char *text; /* that was signed */
    size_t size;
    const unsigned char *signature;
    size_t signature_size;
};
int oauth_verify(const struct oauth_keys *keys, const struct oauth_signed *said, error *err);
