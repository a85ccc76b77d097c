/* store.c - two tables in SQLite. All statements are in the list below. */
#include "keys/store.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "keys/database.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

enum { BUSY_MS = 2000 };

enum statement { ADD, CHANGE_SECRET, REVOKE, LIST, FIND, LOAD_USE, SAVE_USE, STATEMENTS };

#define COLUMNS                                                                    \
    "id, name, tenant, scopes, policies, created, expires, revoked, concurrency, " \
    "runs_per_minute, cpu_seconds_per_day"

static const char schema[] =
    "PRAGMA journal_mode = WAL;"
    "CREATE TABLE IF NOT EXISTS keys (id TEXT PRIMARY KEY, name TEXT NOT NULL, tenant TEXT NOT "
    "NULL, scopes INTEGER NOT NULL, policies TEXT NOT NULL, created INTEGER NOT NULL, expires "
    "INTEGER NOT NULL, revoked INTEGER NOT NULL, concurrency INTEGER NOT NULL, runs_per_minute "
    "INTEGER NOT NULL, cpu_seconds_per_day INTEGER NOT NULL, hash BLOB NOT NULL, old_hash BLOB, "
    "old_until INTEGER NOT NULL DEFAULT 0) STRICT;"
    "CREATE TABLE IF NOT EXISTS uses (id TEXT PRIMARY KEY, day INTEGER NOT NULL, cpu_ms INTEGER "
    "NOT NULL) STRICT;";

static const char *const synchronous[] = {
    [KEYS_WRITE_NOW] = "PRAGMA synchronous = FULL",
    [KEYS_WRITE_SOON] = "PRAGMA synchronous = NORMAL",
};

static const char *const texts[STATEMENTS] = {
    [ADD] = "INSERT INTO keys (" COLUMNS ", hash) VALUES (?,?,?,?,?,?,?,0,?,?,?,?)",
    [CHANGE_SECRET] = "UPDATE keys SET old_hash = hash, old_until = ?2, hash = ?3 "
                      "WHERE id = ?1 AND revoked = 0",
    [REVOKE] = "UPDATE keys SET revoked = ?2 WHERE id = ?1 AND revoked = 0",
    [LIST] = "SELECT " COLUMNS " FROM keys ORDER BY created, id",
    [FIND] = "SELECT " COLUMNS ", hash, old_hash, old_until FROM keys WHERE id = ?1",
    [LOAD_USE] = "SELECT cpu_ms FROM uses WHERE id = ?1 AND day = ?2",
    [SAVE_USE] = "INSERT INTO uses VALUES (?1, ?2, ?3) "
                 "ON CONFLICT(id) DO UPDATE SET day = excluded.day, cpu_ms = excluded.cpu_ms",
};

struct key_store {
    struct database database;
    sqlite3_stmt *statements[STATEMENTS];
    unsigned char secret[crypto_generichash_KEYBYTES];
};

/* --- opening ---------------------------------------------------------------------------------- */

/* The first process makes the file; all others read it. */
static int load_secret(struct key_store *store, const char *folder, error *err)
{
    char path[PATH_MAX], fresh[PATH_MAX + 16];
    (void) snprintf(path, sizeof path, "%s/keys.secret", folder);
    (void) snprintf(fresh, sizeof fresh, "%s.%08x", path, randombytes_random());
    for (int turn = 0; turn < 2; turn++) {
        auto_fd file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (file >= 0) {
            if (read(file, store->secret, sizeof store->secret) != sizeof store->secret)
                return fail(err, ERR_UNAVAILABLE,
                            "'%s' is not what it was; put it back, or remove it together with "
                            "keys.db and make all keys again",
                            path);
            return 0;
        }
        if (errno != ENOENT || turn > 0)
            break;
        auto_fd made = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        randombytes_buf(store->secret, sizeof store->secret);
        if (made < 0 || write(made, store->secret, sizeof store->secret) != sizeof store->secret ||
            fsync(made) < 0 || (link(fresh, path) < 0 && errno != EEXIST))
            return fail_os(err, "make '%s'", path);
        (void) unlink(fresh);
    }
    return fail_os(err, "read '%s'", path);
}

static int open_database(struct key_store *store, const char *folder, enum key_store_writes writes,
                         error *err)
{
    const struct database_plan plan = { .folder = folder,
                                        .name = "keys.db",
                                        .busy_ms = BUSY_MS,
                                        .schema = schema,
                                        .count = STATEMENTS,
                                        .texts = texts };
    store->database.statements = store->statements;
    if (database_open(&plan, &store->database, err) < 0)
        return -1;
    if (sqlite3_exec(store->database.file, synchronous[writes], NULL, NULL, NULL) != SQLITE_OK)
        return database_failed(&store->database, plan.name, err);
    return 0;
}

int key_store_open(const char *folder, enum key_store_writes writes, struct key_store **ret_store,
                   error *err)
{
    struct key_store *store = calloc(1, sizeof *store);
    if (!store || sodium_init() < 0) {
        free(store);
        return fail(err, ERR_SYSTEM, "no memory for the keys");
    }
    if (open_database(store, folder, writes, err) < 0 || load_secret(store, folder, err) < 0) {
        key_store_close(store);
        return under(err, "keys");
    }
    *ret_store = store;
    return 0;
}

void key_store_close(struct key_store *store)
{
    if (!store)
        return;
    database_close(&store->database);
    sodium_memzero(store, sizeof *store);
    free(store);
}

/* --- statements ------------------------------------------------------------------------------- */

static void bind_blob(sqlite3_stmt *statement, int at, const unsigned char *hash)
{
    (void) sqlite3_bind_blob(statement, at, hash, API_KEY_HASH_SIZE, SQLITE_TRANSIENT);
}

/* --- keys ------------------------------------------------------------------------------------- */

static void hash_secret(const struct key_store *store, const char *id,
                        const unsigned char secret[API_KEY_SECRET_SIZE],
                        unsigned char ret_hash[API_KEY_HASH_SIZE])
{
    crypto_generichash_state state;
    (void) crypto_generichash_init(&state, store->secret, sizeof store->secret, API_KEY_HASH_SIZE);
    (void) crypto_generichash_update(&state, (const unsigned char *) id, API_KEY_ID_SIZE);
    (void) crypto_generichash_update(&state, secret, API_KEY_SECRET_SIZE);
    (void) crypto_generichash_final(&state, ret_hash, API_KEY_HASH_SIZE);
}

/* Makes a new secret for this id: the text for the owner, and the hash for the table. */
static void make_secret(const struct key_store *store, const char *id, char text[API_KEY_TEXT_SIZE],
                        unsigned char hash[API_KEY_HASH_SIZE])
{
    unsigned char secret[API_KEY_SECRET_SIZE];
    randombytes_buf(secret, sizeof secret);
    key_print(id, secret, text);
    hash_secret(store, id, secret, hash);
    sodium_memzero(secret, sizeof secret);
}

int key_store_create(struct key_store *store, struct api_key *key, char ret_text[API_KEY_TEXT_SIZE],
                     error *err)
{
    unsigned char random[8], hash[API_KEY_HASH_SIZE];
    char text[API_KEY_TEXT_SIZE];
    randombytes_buf(random, sizeof random);
    (void) sodium_bin2hex(key->id, sizeof key->id, random, sizeof random);
    if (key->tenant[0] == '\0')
        memcpy(key->tenant, key->id, sizeof key->id);
    key->created_s = wall_clock_ms() / 1000;
    make_secret(store, key->id, text, hash);

    sqlite3_stmt *statement = database_begin(&store->database, ADD);
    database_bind_text(statement, 1, key->id);
    database_bind_text(statement, 2, key->name);
    database_bind_text(statement, 3, key->tenant);
    (void) sqlite3_bind_int64(statement, 4, key->scopes);
    database_bind_text(statement, 5, key->policies);
    (void) sqlite3_bind_int64(statement, 6, key->created_s);
    (void) sqlite3_bind_int64(statement, 7, key->expires_s);
    (void) sqlite3_bind_int64(statement, 8, key->concurrency);
    (void) sqlite3_bind_int64(statement, 9, key->runs_per_minute);
    (void) sqlite3_bind_int64(statement, 10, key->cpu_seconds_per_day);
    bind_blob(statement, 11, hash);
    if (database_finish(&store->database, statement, "keep the key", err) < 0)
        return -1;
    memcpy(ret_text, text, sizeof text);
    return 0;
}

static void read_key(sqlite3_stmt *statement, struct api_key *key)
{
    *key = (struct api_key){
        .scopes = (uint32_t) sqlite3_column_int64(statement, 3),
        .created_s = sqlite3_column_int64(statement, 5),
        .expires_s = sqlite3_column_int64(statement, 6),
        .revoked_s = sqlite3_column_int64(statement, 7),
        .concurrency = (uint32_t) sqlite3_column_int64(statement, 8),
        .runs_per_minute = (uint32_t) sqlite3_column_int64(statement, 9),
        .cpu_seconds_per_day = (uint32_t) sqlite3_column_int64(statement, 10),
    };
    database_take_text(statement, 0, key->id, sizeof key->id);
    database_take_text(statement, 1, key->name, sizeof key->name);
    database_take_text(statement, 2, key->tenant, sizeof key->tenant);
    database_take_text(statement, 4, key->policies, sizeof key->policies);
}

int key_store_list(struct key_store *store, int (*each)(void *context, const struct api_key *key),
                   void *context, error *err)
{
    sqlite3_stmt *statement = database_begin(&store->database, LIST);
    int result;
    bool goes_on = true;
    while (goes_on && (result = sqlite3_step(statement)) == SQLITE_ROW) {
        struct api_key key;
        read_key(statement, &key);
        goes_on = each(context, &key) == 0;
    }
    (void) sqlite3_reset(statement);
    return goes_on && result != SQLITE_DONE
               ? database_failed(&store->database, "list the keys", err)
               : 0;
}

/* No row was changed: does the key not exist, or is it revoked? */
static int explain_nothing(struct key_store *store, const char *id, error *err)
{
    sqlite3_stmt *statement = database_begin(&store->database, FIND);
    database_bind_text(statement, 1, id);
    bool exists = sqlite3_step(statement) == SQLITE_ROW;
    (void) sqlite3_reset(statement);
    if (exists)
        return fail(err, ERR_CONFLICT, "key %.20s is revoked already; make another one", id);
    return fail(err, ERR_NOT_FOUND, "no key has the id '%.40s'; see glovebox key list", id);
}

int key_store_rotate(struct key_store *store, const char *id, int64_t old_until_s,
                     char ret_text[API_KEY_TEXT_SIZE], error *err)
{
    unsigned char hash[API_KEY_HASH_SIZE];
    char text[API_KEY_TEXT_SIZE];
    char own_id[API_KEY_ID_SIZE] = "";
    (void) snprintf(own_id, sizeof own_id, "%s", id);
    make_secret(store, own_id, text, hash);
    sqlite3_stmt *statement = database_begin(&store->database, CHANGE_SECRET);
    database_bind_text(statement, 1, id);
    (void) sqlite3_bind_int64(statement, 2, old_until_s);
    bind_blob(statement, 3, hash);
    int changed = database_finish(&store->database, statement, "change the key", err);
    if (changed <= 0)
        return changed < 0 ? -1 : explain_nothing(store, id, err);
    memcpy(ret_text, text, sizeof text);
    return 0;
}

int key_store_revoke(struct key_store *store, const char *id, error *err)
{
    sqlite3_stmt *statement = database_begin(&store->database, REVOKE);
    database_bind_text(statement, 1, id);
    (void) sqlite3_bind_int64(statement, 2, wall_clock_ms() / 1000);
    int changed = database_finish(&store->database, statement, "revoke the key", err);
    return changed > 0 ? 0 : changed < 0 ? -1 : explain_nothing(store, id, err);
}

/* --- checking --------------------------------------------------------------------------------- */

static bool is_same(sqlite3_stmt *statement, int column,
                    const unsigned char hash[API_KEY_HASH_SIZE])
{
    static const unsigned char nothing[API_KEY_HASH_SIZE];
    bool is_whole = statement && sqlite3_column_bytes(statement, column) == API_KEY_HASH_SIZE;
    const void *kept = is_whole ? sqlite3_column_blob(statement, column) : nothing;
    return sodium_memcmp(kept, hash, API_KEY_HASH_SIZE) == 0 && is_whole;
}

static int judge(const struct api_key *key, error *err)
{
    int64_t now_s = wall_clock_ms() / 1000;
    if (key->revoked_s != 0)
        return fail(err, ERR_UNAUTHORIZED, "key %s was revoked; ask for another one", key->id);
    if (key->expires_s != 0 && now_s >= key->expires_s)
        return fail(err, ERR_UNAUTHORIZED, "key %s has expired; ask for another one", key->id);
    return 0;
}

int key_store_check(struct key_store *store, const char *text, struct api_key *ret_key, error *err)
{
    char id[API_KEY_ID_SIZE] = "0000000000000000";
    unsigned char secret[API_KEY_SECRET_SIZE] = { 0 }, hash[API_KEY_HASH_SIZE];
    bool is_formed = key_parse(text, id, secret);
    hash_secret(store, id, secret, hash);
    sodium_memzero(secret, sizeof secret);
    sqlite3_stmt *statement = database_begin(&store->database, FIND);
    database_bind_text(statement, 1, id);
    bool exists = sqlite3_step(statement) == SQLITE_ROW;
    bool is_new = is_same(exists ? statement : NULL, 11, hash);
    bool is_old = is_same(exists ? statement : NULL, 12, hash);
    bool old_is_good = exists && sqlite3_column_int64(statement, 13) > wall_clock_ms() / 1000;
    struct api_key key = { 0 };
    if (exists)
        read_key(statement, &key);
    (void) sqlite3_reset(statement);
    if (!is_formed || !(is_new || (is_old && old_is_good)))
        return fail(err, ERR_UNAUTHORIZED,
                    "this key is not known here; make one with: glovebox key create");
    if (judge(&key, err) < 0)
        return -1;
    *ret_key = key;
    return 0;
}

int key_store_find(struct key_store *store, const char *id, struct api_key *ret_key, error *err)
{
    sqlite3_stmt *statement = database_begin(&store->database, FIND);
    database_bind_text(statement, 1, id);
    bool exists = sqlite3_step(statement) == SQLITE_ROW;
    if (exists)
        read_key(statement, ret_key);
    (void) sqlite3_reset(statement);
    return exists ? judge(ret_key, err)
                  : fail(err, ERR_UNAUTHORIZED, "key %.20s is not known here", id);
}

/* --- use -------------------------------------------------------------------------------------- */

int key_store_load_use(struct key_store *store, const char *id, int64_t day, uint64_t *ret_cpu_ms,
                       error *err)
{
    sqlite3_stmt *statement = database_begin(&store->database, LOAD_USE);
    database_bind_text(statement, 1, id);
    (void) sqlite3_bind_int64(statement, 2, day);
    int result = sqlite3_step(statement);
    int64_t cpu_ms = result == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    (void) sqlite3_reset(statement);
    if (result != SQLITE_ROW && result != SQLITE_DONE)
        return database_failed(&store->database, "read what a key has used", err);
    *ret_cpu_ms = cpu_ms > 0 ? (uint64_t) cpu_ms : 0;
    return 0;
}

int key_store_save_use(struct key_store *store, const char *id, int64_t day, uint64_t cpu_ms,
                       error *err)
{
    sqlite3_stmt *statement = database_begin(&store->database, SAVE_USE);
    database_bind_text(statement, 1, id);
    (void) sqlite3_bind_int64(statement, 2, day);
    (void) sqlite3_bind_int64(statement, 3, (int64_t) cpu_ms);
    return database_finish(&store->database, statement, "keep what a key has used", err) < 0 ? -1
                                                                                             : 0;
}
