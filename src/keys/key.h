/* key.h - an API key: a public id, 256 random bits, and what it allows.
 *
 *     glb_5f0c9a2b7d1e4f60_hV3…  (the id finds the row, the rest is the secret)
 *
 * A key is shown once. Only a keyed hash of its secret is stored. 256 random bits cannot be
 * guessed, so a slow password hash would only let clients use up processor time with wrong keys. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    API_KEY_ID_SIZE = 17,   /* 16 hex digits and the end */
    API_KEY_TEXT_SIZE = 65, /* "glb_", the id, "_", 43 characters of base64url, and the end */
    API_KEY_SECRET_SIZE = 32,
    API_KEY_HASH_SIZE = 32,
    API_KEY_NAME_SIZE = 64,
    API_KEY_POLICIES_SIZE = 512,
};

enum scope_bit {
#define SCOPE(name, ...) SCOPE_BIT_##name,
#include "keys/scopes.def"
    SCOPES
};

enum {
#define SCOPE(name, ...) SCOPE_##name = 1 << SCOPE_BIT_##name,
#include "keys/scopes.def"
    SCOPE_EVERY = (1 << SCOPES) - 1
};

/* A limit of 0 means the daemon's default. */
struct api_key {
    char id[API_KEY_ID_SIZE];
    char name[API_KEY_NAME_SIZE];
    char tenant[API_KEY_NAME_SIZE]; /* whose runs and files it sees; by default the key's id */
    uint32_t scopes;                /* SCOPE_… */
    char policies[API_KEY_POLICIES_SIZE]; /* "data,minimal"; "": every one */
    int64_t created_s, expires_s;         /* since 1970; expires_s 0: never */
    int64_t revoked_s;                    /* 0: not revoked */
    uint32_t concurrency;                 /* runs at once */
    uint32_t runs_per_minute;
    uint32_t cpu_seconds_per_day;
};

/* Convert "run,sessions" to bits and back. Fails  ERR_BAD_REQUEST  an unknown name. */
int scopes_read(const char *text, uint32_t *ret_scopes, error *err);
void scopes_print(uint32_t scopes, char *text, size_t size);
const char *scope_name(enum scope_bit bit);

/* Is this name one of "a,b,c"? An empty list allows every name. */
bool key_allows_policy(const struct api_key *key, const char *policy);

/* Writes the text that the owner gets. */
void key_print(const char *id, const unsigned char secret[API_KEY_SECRET_SIZE],
               char ret_text[API_KEY_TEXT_SIZE]);

/* Parses a text. False for anything that key_print() would not have written. */
bool key_parse(const char *text, char ret_id[API_KEY_ID_SIZE],
               unsigned char ret_secret[API_KEY_SECRET_SIZE]);
