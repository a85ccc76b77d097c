/* accounts_test.c - the rights and quotas of keys, and whose run is next. The key store is a real
 * one in a folder of the test; both clocks are numbers (--wrap). */
#include "base/clock.h"
#include "base/table.h"
#include "base/test.h"
#include "engine/schedule/accounts.h"

#include <string.h>
#include <unistd.h>

enum { KEYS = 3, DAY_S = 86400, DAY = 20000, SECOND = 3600, LEFT_S = DAY_S - SECOND };

static char folder[] = "/tmp/glovebox-accounts-XXXXXX";
static struct accounts accounts;
static struct account *keys[KEYS]; /* 0 and 1 are of tenant "red", 2 is of tenant "blue" */
static char texts[KEYS][API_KEY_TEXT_SIZE];
static uv_loop_t loop;
static int64_t clock_ms, wall_ms;

int64_t __wrap_now_ms(void);
int64_t __wrap_now_ms(void)
{
    return clock_ms;
}

int64_t __wrap_wall_clock_ms(void);
int64_t __wrap_wall_clock_ms(void)
{
    return wall_ms;
}

static void identify_all(void)
{
    error err;
    for (unsigned i = 0; i < KEYS; i++)
        require(accounts_identify(&accounts, texts[i], &keys[i], &err) == 0, "%s", err.text);
}

static void remove_files(void)
{
    static const char *const names[] = { "keys.db", "keys.db-wal", "keys.db-shm", "keys.secret" };
    for_each(name, names) {
        char path[128];
        (void) snprintf(path, sizeof path, "%s/%s", folder, *name);
        (void) unlink(path);
    }
}

static void begin(void)
{
    error err;
    remove_files();
    memset(&accounts, 0, sizeof accounts);
    clock_ms = 1000000;
    wall_ms = ((int64_t) DAY * DAY_S + SECOND) * 1000;
    require(accounts_open(&accounts, &loop, folder, &err) == 0, "%s", err.text);
    for (unsigned i = 0; i < KEYS; i++) {
        struct api_key key = { .scopes = SCOPE_RUN };
        (void) snprintf(key.policies, sizeof key.policies, "%s", i == 0 ? "data,minimal" : "");
        (void) snprintf(key.tenant, sizeof key.tenant, "%s", i == 2 ? "blue" : "red");
        require(key_store_create(accounts.store, &key, texts[i], &err) == 0, "%s", err.text);
    }
    identify_all();
}

static void end(void)
{
    accounts_close(&accounts);
    (void) uv_run(&loop, UV_RUN_DEFAULT);
    accounts_done(&accounts);
}

struct refusal {
    enum error_code code;
    unsigned retry_s;
    const char *word; /* of the message */
};

static void expect_refused(const struct account *account, int result, const error *err,
                           struct refusal refusal)
{
    expect(result < 0 && err->code == (int32_t) refusal.code &&
               account->retry_s == refusal.retry_s && strstr(err->text, refusal.word),
           "'%s': %d, error %d, retry in %u s: %s", refusal.word, result, err->code,
           account->retry_s, result < 0 ? err->text : "");
}

TEST(a_tenant_sees_what_its_own_keys_made_and_nothing_else)
{
    error err;
    begin();
    struct account *again = NULL;
    expect(accounts_identify(&accounts, texts[0], &again, &err) == 0 && again == keys[0],
           "a key has two accounts");
    expect(account_sees(keys[0], keys[1]) && account_sees(keys[1], keys[0]), "one tenant");
    expect(!account_sees(keys[0], keys[2]) && !account_sees(keys[2], keys[0]), "two tenants");
    for (unsigned i = 0; i < KEYS; i++)
        expect(!account_sees(keys[i], &accounts.local) && !account_sees(&accounts.local, keys[i]),
               "key %u and the owner of the daemon", i);
    expect(strcmp(keys[0]->owner, keys[1]->owner) == 0 &&
               strcmp(keys[0]->owner, keys[2]->owner) != 0,
           "owners '%s', '%s', '%s'", keys[0]->owner, keys[1]->owner, keys[2]->owner);
    expect(strlen(keys[0]->owner) == BLOB_OWNER_SIZE - 1, "'%s'", keys[0]->owner);
    expect(accounts_of_key(&accounts, "", &again, &err) == 0 && again == &accounts.local, "owner");
    expect(accounts_of_key(&accounts, keys[2]->key.id, &again, &err) == 0 && again == keys[2],
           "by its id");
    expect(accounts_of_key(&accounts, "0000000000000000", &again, &err) < 0 &&
               err.code == ERR_UNAUTHORIZED,
           "an id that no key has");
    end();
}

TEST(scopes_and_policies_of_a_key_are_held)
{
    error err;
    begin();
    expect(account_check_scope(keys[0], SCOPE_RUN, &err) == 0 &&
               account_check_scope(keys[0], SCOPE_RUN | SCOPE_SESSIONS, &err) == 0,
           "one of the scopes is enough");
    expect(account_check_scope(keys[0], SCOPE_SESSIONS, &err) < 0 && err.code == ERR_FORBIDDEN &&
               strstr(err.text, "sessions"),
           "%s", err.text);
    expect(account_check_policy(keys[0], "data", &err) == 0 &&
               account_check_policy(keys[1], "anything", &err) == 0,
           "a policy that it may use");
    expect(account_check_policy(keys[0], "dat", &err) < 0 && err.code == ERR_FORBIDDEN &&
               strstr(err.text, "data,minimal"),
           "%s", err.text);
    end();
}

TEST(quotas_of_a_key_go_before_those_of_the_daemon_and_its_owner_has_none)
{
    begin();
    accounts.defaults = (struct account_defaults){ .runs_per_minute = 60,
                                                   .cpu_seconds_per_day = 100,
                                                   .log_bytes_per_day = 1000 };
    keys[0]->key.runs_per_minute = 7;
    keys[1]->key.cpu_seconds_per_day = 8;
    struct rate_quota first = account_quota(&accounts, keys[0]);
    struct rate_quota second = account_quota(&accounts, keys[1]);
    struct rate_quota owner = account_quota(&accounts, &accounts.local);
    expect(first.runs_per_minute == 7 && first.cpu_seconds_per_day == 100, "%u runs, %u s",
           first.runs_per_minute, first.cpu_seconds_per_day);
    expect(second.runs_per_minute == 60 && second.cpu_seconds_per_day == 8, "%u runs, %u s",
           second.runs_per_minute, second.cpu_seconds_per_day);
    expect(first.log_bytes_per_day == 1000, "the log");
    expect(owner.runs_per_minute + owner.cpu_seconds_per_day + owner.log_bytes_per_day == 0,
           "the owner of the daemon has a quota");
    end();
}

TEST(a_full_queue_refuses_and_is_shorter_for_a_while)
{
    error err = { 0 };
    begin();
    accounts.defaults.queue = 10;
    keys[0]->turn.queued = 9;
    expect(account_admit(&accounts, keys[0], &err) == 0, "%s", err.text);
    keys[0]->turn.queued = 10;
    expect_refused(keys[0], account_admit(&accounts, keys[0], &err), &err,
                   (struct refusal){ ERR_BUSY, 1, "10 runs" });
    expect(keys[0]->refused == 1, "%llu are counted", (unsigned long long) keys[0]->refused);
    keys[0]->turn.active = 8; /* half of those that are served may wait now */
    keys[0]->turn.queued = 4;
    expect_refused(keys[0], account_admit(&accounts, keys[0], &err), &err,
                   (struct refusal){ ERR_BUSY, 1, "4 runs" });
    keys[0]->turn.queued = 3;
    expect(account_admit(&accounts, keys[0], &err) == 0, "%s", err.text);
    keys[0]->turn.queued = 9;
    clock_ms += OVERLOAD_LASTS_MS;
    expect(account_admit(&accounts, keys[0], &err) == 0, "it is over: %s", err.text);

    accounts.local.turn.queued = 1000;
    expect(account_admit(&accounts, &accounts.local, &err) == 0, "the owner: %s", err.text);
    end();
}

TEST(a_quota_that_is_used_up_says_when_the_next_run_may_start)
{
    error err = { 0 };
    begin();
    accounts.defaults = (struct account_defaults){ .runs_per_minute = 2,
                                                   .cpu_seconds_per_day = 3,
                                                   .log_bytes_per_day = 100 };
    for (int i = 0; i < 2; i++) {
        expect(account_admit(&accounts, keys[0], &err) == 0, "%s", err.text);
        rate_take(&keys[0]->rate);
    }
    expect_refused(keys[0], account_admit(&accounts, keys[0], &err), &err,
                   (struct refusal){ ERR_QUOTA, 31, "2 runs a minute" });
    clock_ms += 30000;
    expect(account_admit(&accounts, keys[0], &err) == 0, "%s", err.text);

    account_charge_cpu(keys[1], 2999);
    expect(account_admit(&accounts, keys[1], &err) == 0 &&
               account_check_day(&accounts, keys[1], &err) == 0,
           "%s", err.text);
    account_charge_cpu(keys[1], 1);
    expect_refused(keys[1], account_admit(&accounts, keys[1], &err), &err,
                   (struct refusal){ ERR_QUOTA, LEFT_S, "3.0 s of its 3 s" });

    account_charge_log(keys[2], 99);
    expect(account_check_log(&accounts, keys[2], &err) == 0, "%s", err.text);
    account_charge_log(keys[2], 1);
    expect_refused(keys[2], account_check_log(&accounts, keys[2], &err), &err,
                   (struct refusal){ ERR_QUOTA, LEFT_S, "100 bytes" });
    expect_refused(keys[2], account_admit(&accounts, keys[2], &err), &err,
                   (struct refusal){ ERR_QUOTA, LEFT_S, "100 bytes" });
    wall_ms += (int64_t) LEFT_S * 1000;
    expect(account_admit(&accounts, keys[1], &err) == 0 &&
               account_admit(&accounts, keys[2], &err) == 0,
           "the next day: %s", err.text);
    end();
}

TEST(no_key_holds_more_than_three_quarters_of_what_others_leave)
{
    error err;
    begin();
    accounts.slots = 16;
    keys[1]->sessions = 3;
    keys[2]->turn.active = 5; /* 8 are left, of which it may have 6 */
    keys[0]->sessions = 2;
    keys[0]->turn.active = 3;
    expect(!account_is_at_share(&accounts, keys[0]), "with 5 of 6");
    accounts.local.turn.active = 2;
    expect(account_is_at_share(&accounts, keys[0]), "the owner's runs hold slots, too");
    accounts.local.turn.active = 0;
    keys[0]->turn.active = 4;
    expect(account_is_at_share(&accounts, keys[0]), "with 6 of 6");
    expect(!account_stays_at_share(&accounts, keys[0]), "its runs and those of others will end");
    keys[0]->sessions = 8; /* of 13 that sessions of others leave it may have 9 */
    expect(!account_stays_at_share(&accounts, keys[0]), "with 8 of 9");
    keys[0]->sessions = 9;
    expect(account_stays_at_share(&accounts, keys[0]), "only sessions, and they stay");
    accounts.local.sessions = 4; /* 9 are left of which 6 */
    keys[0]->sessions = 6;
    expect(account_stays_at_share(&accounts, keys[0]), "the owner's sessions count");
    expect(account_refuse_slot(&accounts, keys[0], &err) < 0 && err.code == ERR_BUSY &&
               strstr(err.text, "10 of 16 slots (6 sessions, 4 runs)"),
           "%s", err.text);

    keys[0]->turn.active_max = 12;
    expect(!account_is_at_share(&accounts, keys[0]), "a key with a number of its own has no share");
    keys[0]->turn.active_max = 0;
    accounts.local.turn.active = 16;
    expect(!account_is_at_share(&accounts, &accounts.local), "the owner has no share");
    accounts.slots = 0;
    expect(!account_is_at_share(&accounts, keys[0]), "it is not known how many there are");
    end();
}

TEST(a_key_without_others_may_hold_every_slot)
{
    error err;
    begin();
    accounts.slots = 4;
    keys[0]->sessions = 4;
    expect(account_is_at_share(&accounts, keys[0]), "others may come, seen or not");
    require(key_store_revoke(accounts.store, keys[1]->key.id, &err) == 0 &&
                key_store_revoke(accounts.store, keys[2]->key.id, &err) == 0,
            "%s", err.text);
    clock_ms += 1000; /* then they are counted again */
    expect(!account_is_at_share(&accounts, keys[0]), "there is no other key that is good");
    end();
}

TEST(the_key_that_has_used_least_is_next)
{
    begin();
    expect(accounts_next(&accounts) == NULL, "nobody waits");
    for (unsigned i = 0; i < KEYS; i++) {
        keys[i]->turn.queued = 1;
        keys[i]->turn.clock_us = 100 + (int64_t) ((i + 1) % KEYS); /* least: 2, 0, 1 */
    }
    expect(accounts_next(&accounts) == keys[2], "the one that has used least");
    accounts.slots = 4;
    keys[2]->sessions = 3;
    expect(accounts_next(&accounts) == keys[0], "one at its share waits");
    keys[0]->turn.queued = 0;
    expect(accounts_next(&accounts) == keys[1], "one that wants nothing is passed over");
    accounts.local.turn.queued = 1;
    accounts.local.turn.clock_us = 101;
    expect(accounts_next(&accounts) == &accounts.local, "the owner has a clock as well");
    end();
}

TEST(the_queue_is_shared_by_waiting_accounts)
{
    begin();
    accounts.busy = 12;
    expect(account_share(&accounts, keys[0]) == 12, "alone: %u", account_share(&accounts, keys[0]));
    keys[1]->turn.queued = 1;
    keys[2]->turn.active = 4;
    expect(account_share(&accounts, keys[0]) == 4, "of two: %u", account_share(&accounts, keys[0]));
    accounts.local.turn.queued = 1;
    keys[0]->turn.queued = 5;
    expect(account_share(&accounts, keys[0]) == 2, "of three: %u",
           account_share(&accounts, keys[0]));
    end();
}

TEST(what_a_run_has_used_is_charged_and_outlasts_the_daemon)
{
    error err;
    begin();
    struct verdict verdict = { .status = RUN_LIMIT, .limit = LIMIT_memory };
    uint64_t hits[LIMITS] = { [LIMIT_memory] = 9, [LIMIT_disk] = 1 };
    account_charge(keys[0], 1500001, &verdict, hits);
    account_charge_log(keys[0], 77);
    expect(keys[0]->runs == 1 && keys[0]->ends[RUN_LIMIT] == 1 && keys[0]->ends[RUN_OK] == 0 &&
               keys[0]->limit_hits[LIMIT_memory] == 1 && keys[0]->limit_hits[LIMIT_disk] == 1 &&
               keys[0]->limit_hits[LIMIT_wall] == 0,
           "the run is not counted once");
    expect(keys[0]->cpu_ms == 1501 && keys[0]->rate.cpu_ms == 1501, "%llu ms",
           (unsigned long long) keys[0]->cpu_ms);
    account_charge(keys[1], 2000, &verdict, hits);
    expect(keys[1]->cpu_ms == 2, "%llu ms", (unsigned long long) keys[1]->cpu_ms);
    end();

    memset(&accounts, 0, sizeof accounts);
    require(accounts_open(&accounts, &loop, folder, &err) == 0, "%s", err.text);
    identify_all();
    expect(keys[0]->rate.cpu_ms == 1501 && keys[0]->rate.log_bytes == 77, "%llu ms, %llu bytes",
           (unsigned long long) keys[0]->rate.cpu_ms, (unsigned long long) keys[0]->rate.log_bytes);
    expect(keys[0]->rate.day == DAY, "day %lld", (long long) keys[0]->rate.day);
    expect(keys[1]->rate.cpu_ms == 2 && keys[2]->rate.cpu_ms == 0, "another key was charged");
    end();
}

TEST(a_private_daemon_has_no_keys)
{
    error err;
    struct account *account = NULL;
    memset(&accounts, 0, sizeof accounts);
    require(accounts_open(&accounts, &loop, NULL, &err) == 0, "%s", err.text);
    expect(accounts_identify(&accounts, "glb_0000000000000000_x", &account, &err) < 0 &&
               err.code == ERR_UNAUTHORIZED,
           "a key is taken");
    expect(account_check_scope(&accounts.local, SCOPE_EVERY, &err) == 0, "%s", err.text);
    end();
}

TEST(a_key_is_good_until_it_is_revoked_or_has_expired)
{
    error err;
    begin();
    expect(account_is_good(&accounts, &accounts.local), "the owner needs no key");
    expect(account_is_good(&accounts, keys[0]) && account_is_good(&accounts, keys[1]), "new keys");
    require(key_store_revoke(accounts.store, keys[0]->key.id, &err) == 0, "%s", err.text);
    expect(!account_is_good(&accounts, keys[0]), "it was revoked");
    expect(account_is_good(&accounts, keys[1]), "another one was revoked");
    keys[1]->key.expires_s = wall_ms / 1000 + 1;
    expect(account_is_good(&accounts, keys[1]), "it expires in a second");
    keys[1]->key.expires_s = wall_ms / 1000;
    expect(!account_is_good(&accounts, keys[1]), "it has expired");
    struct account subject = { .is_of_token = true, .key = { .id = "subject" } };
    expect(account_is_good(&accounts, &subject), "no key of the store vouches for a token");
    subject.key.expires_s = wall_ms / 1000;
    expect(!account_is_good(&accounts, &subject), "the token has expired");
    end();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE(a_tenant_sees_what_its_own_keys_made_and_nothing_else),
        CASE(scopes_and_policies_of_a_key_are_held),
        CASE(quotas_of_a_key_go_before_those_of_the_daemon_and_its_owner_has_none),
        CASE(a_full_queue_refuses_and_is_shorter_for_a_while),
        CASE(a_quota_that_is_used_up_says_when_the_next_run_may_start),
        CASE(no_key_holds_more_than_three_quarters_of_what_others_leave),
        CASE(a_key_without_others_may_hold_every_slot),
        CASE(the_key_that_has_used_least_is_next),
        CASE(the_queue_is_shared_by_waiting_accounts),
        CASE(what_a_run_has_used_is_charged_and_outlasts_the_daemon),
        CASE(a_key_is_good_until_it_is_revoked_or_has_expired),
        CASE(a_private_daemon_has_no_keys),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (!mkdtemp(folder) || uv_loop_init(&loop) < 0)
        return EXIT_FAILURE;
    int result = cmocka_run_group_tests(tests, NULL, NULL);
    remove_files();
    (void) rmdir(folder);
    (void) uv_loop_close(&loop);
    return result;
}
