/* store_test.c - a key is valid for its holder until it expires or is revoked. */
#include "base/test.h"
#include "keys/store.h"

#include "base/clock.h"
#include "base/table.h"
#include "keys/database.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/glovebox-keys-XXXXXX";

static struct key_store *open_store(void)
{
    struct key_store *store = NULL;
    error err;
    require(key_store_open(folder, KEYS_WRITE_NOW, &store, &err) == 0, "%s", err.text);
    return store;
}

static void make(struct key_store *store, struct api_key *key, char text[API_KEY_TEXT_SIZE])
{
    error err;
    require(key_store_create(store, key, text, &err) == 0, "%s", err.text);
}

TEST(a_key_is_found_by_its_text_alone)
{
    struct key_store *store = open_store();
    struct api_key made = {
        .name = "ci", .scopes = SCOPE_RUN, .policies = "data", .concurrency = 3
    };
    struct api_key found;
    char text[API_KEY_TEXT_SIZE];
    error err;
    make(store, &made, text);
    key_store_close(store);
    store = open_store();
    expect(key_store_check(store, text, &found, &err) == 0, "%s", err.text);
    expect(strcmp(found.id, made.id) == 0 && strcmp(found.tenant, made.id) == 0 &&
               found.scopes == SCOPE_RUN && found.concurrency == 3 &&
               strcmp(found.policies, "data") == 0,
           "it came back as %s of %s", found.id, found.tenant);
    for (size_t i = 0; i < strlen(text); i++) {
        char wrong[API_KEY_TEXT_SIZE];
        memcpy(wrong, text, sizeof wrong);
        wrong[i] = wrong[i] == 'Q' ? 'R' : 'Q';
        expect(key_store_check(store, wrong, &found, &err) < 0, "'%s' is taken for '%s'", wrong,
               text);
    }
    static const char *const none[] = { "", "glb_", "Bearer", "glb_0000000000000000_" };
    for_each(row, none)
        expect(key_store_check(store, *row, &found, &err) < 0 && err.code == ERR_UNAUTHORIZED,
               "'%s' is a key", *row);
    key_store_close(store);
}

TEST(no_file_holds_a_secret)
{
    static const char *const files[] = { "keys.db", "keys.db-wal", "keys.secret" };
    struct key_store *store = open_store();
    struct api_key key = { .scopes = SCOPE_RUN };
    char text[API_KEY_TEXT_SIZE];
    make(store, &key, text);
    for_each(name, files) {
        static char bytes[65536];
        char path[128];
        struct stat status;
        (void) snprintf(path, sizeof path, "%s/%s", folder, *name);
        FILE *file = fopen(path, "re");
        if (!file)
            continue;
        size_t size = fread(bytes, 1, sizeof bytes, file);
        expect(memmem(bytes, size, text + 4 + API_KEY_ID_SIZE, 43) == NULL, "it is in %s", path);
        expect(fstat(fileno(file), &status) == 0 && (status.st_mode & 0777) == 0600,
               "%s has mode %o", path, status.st_mode & 0777);
        (void) fclose(file);
    }
    key_store_close(store);
}

TEST(what_is_revoked_or_expired_is_good_for_nothing)
{
    struct key_store *store = open_store(), *other = open_store();
    struct api_key key = { .scopes = SCOPE_RUN }, found;
    struct api_key old = { .scopes = SCOPE_RUN, .expires_s = wall_clock_ms() / 1000 };
    char text[API_KEY_TEXT_SIZE], old_text[API_KEY_TEXT_SIZE];
    error err;
    make(store, &key, text);
    make(store, &old, old_text);
    expect(key_store_check(other, text, &found, &err) == 0, "%s", err.text);
    expect(key_store_check(other, old_text, &found, &err) < 0 && strstr(err.text, "expired"),
           "an expired key: %s", err.text);
    expect(key_store_revoke(store, key.id, &err) == 0, "%s", err.text);
    expect(key_store_check(other, text, &found, &err) < 0 && strstr(err.text, "revoked"),
           "a revoked key: %s", err.text);
    expect(key_store_revoke(store, key.id, &err) < 0 && err.code == ERR_CONFLICT, "twice");
    expect(key_store_revoke(store, "0123", &err) < 0 && err.code == ERR_NOT_FOUND,
           "an unknown id was revoked");
    expect(key_store_rotate(store, key.id, 0, text, &err) < 0, "a revoked key is rotated");
    key_store_close(store);
    key_store_close(other);
}

TEST(a_rotated_key_is_valid_for_its_grace_period)
{
    struct key_store *store = open_store();
    struct api_key key = { .scopes = SCOPE_RUN }, found;
    char first[API_KEY_TEXT_SIZE], second[API_KEY_TEXT_SIZE], third[API_KEY_TEXT_SIZE];
    error err;
    make(store, &key, first);
    expect(key_store_rotate(store, key.id, wall_clock_ms() / 1000 + 60, second, &err) == 0, "%s",
           err.text);
    expect(key_store_check(store, first, &found, &err) == 0, "the old one: %s", err.text);
    expect(key_store_check(store, second, &found, &err) == 0, "the new one: %s", err.text);
    expect(key_store_rotate(store, key.id, 0, third, &err) == 0, "%s", err.text);
    expect(key_store_check(store, first, &found, &err) < 0, "the oldest is still good");
    expect(key_store_check(store, second, &found, &err) < 0, "the old one is still good");
    expect(key_store_check(store, third, &found, &err) == 0, "the third: %s", err.text);
    key_store_close(store);
}

TEST(scopes_and_policies_are_exact)
{
    static const struct {
        const char *text;
        int result;
        uint32_t scopes;
    } facts[] = {
        { "run", 0, SCOPE_RUN }, { "run,admin", 0, SCOPE_RUN | SCOPE_ADMIN },
        { "", -1, 0 },           { "run,", -1, 0 },
        { "Run", -1, 0 },        { "runs", -1, 0 },
    };
    for_each(fact, facts) {
        error err;
        uint32_t scopes = 0;
        int result = scopes_read(fact->text, &scopes, &err);
        expect(result == fact->result && scopes == fact->scopes, "'%s' gave %d, %u", fact->text,
               result, scopes);
    }
    struct api_key key = { .policies = "data,minimal" };
    expect(key_allows_policy(&key, "data") && key_allows_policy(&key, "minimal"), "its own");
    expect(!key_allows_policy(&key, "dat") && !key_allows_policy(&key, "data,minimal"), "others");
    expect(!key_allows_policy(&key, ""), "none");
}

TEST(a_full_disk_is_named_with_what_to_do)
{
    static const char *const texts[] = { "insert into t values (zeroblob(100000))" };
    sqlite3_stmt *statements[1] = { NULL };
    struct database database = { .statements = statements };
    const struct database_plan plan = { .schema = "pragma max_page_count = 3; create table t (x)",
                                        .count = 1,
                                        .texts = texts };
    error err = { 0 };
    require(database_open(&plan, &database, &err) == 0, "%s", err.text);
    int changed = database_finish(&database, database_begin(&database, 0), "write", &err);
    expect(changed < 0 && strcmp(err.text, "write: database or disk is full; make room on the disk "
                                           "of the state folder") == 0,
           "%d: %s", changed, err.text);
    database_close(&database);
}

int main(void)
{
    static const struct CMUnitTest tests[] = { CASE(a_key_is_found_by_its_text_alone),
                                               CASE(no_file_holds_a_secret),
                                               CASE(what_is_revoked_or_expired_is_good_for_nothing),
                                               CASE(a_rotated_key_is_valid_for_its_grace_period),
                                               CASE(scopes_and_policies_are_exact),
                                               CASE(a_full_disk_is_named_with_what_to_do) };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (!mkdtemp(folder))
        return EXIT_FAILURE;
    int result = cmocka_run_group_tests(tests, NULL, NULL);
    static const char *const names[] = { "keys.db", "keys.db-wal", "keys.db-shm", "keys.secret" };
    for_each(name, names) {
        char path[128];
        (void) snprintf(path, sizeof path, "%s/%s", folder, *name);
        (void) unlink(path);
    }
    (void) rmdir(folder);
    return result;
}
