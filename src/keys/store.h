/* store.h - the keys of one daemon: an SQLite file next to its artifacts, readable by it alone.
 *
 * `glovebox key` writes it, with or without a daemon. The daemon reads it for each request, so that
 * a revoked key is refused at once. The hash is keyed with a secret in a file of its own: with a
 * copy of the table alone, an attacker cannot check guesses. */
#pragma once

#include "keys/key.h"

struct key_store;

/* Writes are on the disk before the call returns; or soon after it, for the daemon, which writes
 * only used processor time. */
enum key_store_writes { KEYS_WRITE_NOW, KEYS_WRITE_SOON };

/* Opens FOLDER/keys.db and FOLDER/keys.secret, or makes them, with mode 0600.
 * Gives  *ret_store, closed with key_store_close(). */
int key_store_open(const char *folder, enum key_store_writes writes, struct key_store **ret_store,
                   error *err);
void key_store_close(struct key_store *store);

/* Makes a key. `key` says what it allows; its id, its time and, if not given, its tenant are set.
 * Gives  its text, which is stored nowhere. */
int key_store_create(struct key_store *store, struct api_key *key, char ret_text[API_KEY_TEXT_SIZE],
                     error *err);

/* Gives it a new secret; the old one is valid until `old_until_s`; 0: not any more. */
int key_store_rotate(struct key_store *store, const char *id, int64_t old_until_s,
                     char ret_text[API_KEY_TEXT_SIZE], error *err);

/* Fails  ERR_NOT_FOUND; ERR_CONFLICT  it is revoked already. */
int key_store_revoke(struct key_store *store, const char *id, error *err);

/* Every key, by age; stops when `each` returns non-zero. */
int key_store_list(struct key_store *store, int (*each)(void *context, const struct api_key *key),
                   void *context, error *err);

/* Finds and checks a key. Fails  ERR_UNAUTHORIZED  no such key, revoked, expired: the text says
 * which only to a client that has the right secret. Takes the same time whichever part is wrong. */
int key_store_check(struct key_store *store, const char *text, struct api_key *ret_key, error *err);

/* Finds a checked key by its id. Fails  ERR_UNAUTHORIZED  no such key, revoked, expired. */
int key_store_find(struct key_store *store, const char *id, struct api_key *ret_key, error *err);

/* Processor time that runs of a key have used on one day (days since 1970). */
int key_store_load_use(struct key_store *store, const char *id, int64_t day, uint64_t *ret_cpu_ms,
                       error *err);
int key_store_save_use(struct key_store *store, const char *id, int64_t day, uint64_t cpu_ms,
                       error *err);
