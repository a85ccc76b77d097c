/* oauth.h - access tokens of one authorization server that the operator trusts (RFC 9068, RFC
 * 9728): who carries one is a caller as with an API key.
 *
 * gloveboxd has no way out to the network: the server's keys lie in a file (RFC 7517), which is
 * read again when it has changed. What a token says of keys (jku, jwk, x5u, x5c) is not looked at,
 * and an algorithm belongs to the kind of a key: no key has the kind of `none` or HMAC. */
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

/* What a token may be good for: what decides, and what sees all, needs a key. */
enum { OAUTH_SCOPES = SCOPE_RUN | SCOPE_SESSIONS | SCOPE_AUDIT };

enum oauth_kind { OAUTH_RSA, OAUTH_P256, OAUTH_ED25519 };

struct oauth_key {
    enum oauth_kind kind;
    char id[OAUTH_KEY_ID_SIZE]; /* "": none */
    char algorithm[16];         /* the only one that it is for; "": any of its kind */
    gnutls_pubkey_t key;
};

struct oauth_keys {
    struct oauth_key list[OAUTH_KEYS_MAX];
    size_t count;
};

struct oauth {
    char issuer[OAUTH_URL_SIZE];   /* "": no tokens are taken */
    char audience[OAUTH_URL_SIZE]; /* the name of this service, as its URL */
    char path[OAUTH_PATH_SIZE];    /* of the keys */
    struct oauth_keys keys;
    error failure;      /* why the file cannot be used; code ERR_NONE: it can */
    int64_t looked_ms;  /* at the file, the last time; 0: never */
    int64_t changed_ns; /* as it was then */
    uint64_t inode, size;
};

struct oauth_token {
    char subject[OAUTH_SUBJECT_SIZE];
    uint32_t scopes;                      /* of OAUTH_SCOPES */
    char policies[API_KEY_POLICIES_SIZE]; /* that it is bounded to; "": it is not */
    int64_t expires_s;
};

/* Takes what was checked. */
void oauth_configure(struct oauth *oauth, const char *issuer, const char *audience,
                     const char *path);
void oauth_done(struct oauth *oauth);
bool oauth_is_configured(const struct oauth *oauth);

/* Looks at the file of keys, if that was not done within a second. True: it cannot be used, for a
 * cause that the look before did not have. */
bool oauth_look(struct oauth *oauth);

/* Has this text the form of such a token, and not that of an API key? */
bool oauth_is_token(const char *text);

/* Fails  ERR_UNAUTHORIZED  with what of it is wrong. */
int oauth_check(struct oauth *oauth, const char *text, struct oauth_token *ret_token, error *err);

/* The same as an account knows callers: its id and tenant are made from issuer and subject. */
int oauth_identify(struct oauth *oauth, const char *text, struct api_key *ret_key, error *err);

/* "glovebox:run glovebox:sessions", as tokens name those of OAUTH_SCOPES. */
void oauth_scopes_print(uint32_t scopes, char *text, size_t size);

/* jwks.c: gives what of a set of keys is fit to check signatures. Fails  ERR_BAD_REQUEST. */
int oauth_keys_read(const char *json, size_t size, struct oauth_keys *ret_keys, error *err);
void oauth_keys_done(struct oauth_keys *keys);

/* signature.c: is this one of `signing` by one of these keys? `id` NULL: the token names none.
 * Fails  ERR_UNAUTHORIZED. */
struct oauth_signed {
    const char *algorithm, *id;
    const char *text; /* that was signed */
    size_t size;
    const unsigned char *signature;
    size_t signature_size;
};
int oauth_verify(const struct oauth_keys *keys, const struct oauth_signed *said, error *err);
