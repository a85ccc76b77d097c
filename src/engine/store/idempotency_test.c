/* idempotency_test.c - the same request gets the same run, and nothing else does; no key is
 * forgotten before its day is over, whichever other tenants send keys and whatever the clock on the
 * wall says. */
#include "engine/store/idempotency.h"

#include "base/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEAD_CLOCK = 8, ENTRY_SIZE = 128 }; /* places in the file */

static struct replays *opened(const char *state)
{
    struct replays *replays = NULL;
    error err;
    require(replays_open(&(struct replays_settings){ .state = state }, &replays, &err) == 0, "%s",
            err.text);
    return replays;
}

static int keep(struct replays *replays, const struct replay *replay, const char *id, error *err)
{
    struct replayed begun = { .log_size = 7 };
    (void) snprintf(begun.id, sizeof begun.id, "%s", id);
    return replays_keep(replays, replay, &begun, err);
}

static bool is_known(struct replays *replays, const struct replay *replay, const char *id)
{
    struct replayed found;
    error err;
    return replays_find(replays, replay, &found, &err) == REPLAY_KNOWN && strcmp(found.id, id) == 0;
}

static bool is_new(struct replays *replays, const struct replay *replay)
{
    struct replayed found;
    error err;
    return replays_find(replays, replay, &found, &err) == REPLAY_NEW;
}

static void remove_state(const char *state)
{
    char path[64];
    (void) snprintf(path, sizeof path, "%s/replays", state);
    (void) unlink(path);
    (void) rmdir(state);
}

TEST(the_same_request_gets_the_same_run)
{
    struct replays *replays = opened(NULL);
    error err;
    struct replay one = { .caller = "a", .tenant = "t", .key = "k", .digest = { 1 } };
    struct replay other_body = { .caller = "a", .tenant = "t", .key = "k", .digest = { 2 } };
    struct replay other_caller = { .caller = "b", .tenant = "t", .key = "k", .digest = { 2 } };
    struct replayed run;
    expect(is_new(replays, &one), "it is known before it came");
    expect(keep(replays, &one, "run_1", &err) == 0, "%s", err.text);
    expect(is_known(replays, &one, "run_1"), "it is not known");
    expect(replays_find(replays, &other_body, &run, &err) == -1 && err.code == ERR_CONFLICT,
           "another body was taken for the same");
    expect(is_new(replays, &other_caller), "callers meet");
    replays_free(replays);
}

/* Gives  how many keys of this tenant are kept before one is refused. */
static uint32_t keep_all(struct replays *replays, const char *tenant, error *err)
{
    char key[16];
    struct replay replay = { .caller = tenant, .tenant = tenant, .key = key };
    for (uint32_t i = 0; i <= REPLAYS_MOST; i++) {
        (void) snprintf(key, sizeof key, "%u", i);
        if (keep(replays, &replay, key, err) < 0)
            return i;
    }
    return UINT32_MAX;
}

TEST(nobody_takes_the_place_of_a_key_that_lives)
{
    struct replays *replays = opened(NULL);
    error err;
    struct replay mine = { .caller = "mine", .tenant = "mine", .key = "k" };
    struct replay later = { .caller = "mine", .tenant = "mine", .key = "later" };
    struct replay first = { .caller = "other", .tenant = "other", .key = "0" };
    expect(keep(replays, &mine, "run_1", &err) == 0, "%s", err.text);
    uint32_t kept = keep_all(replays, "other", &err);
    expect(err.code == ERR_QUOTA && kept >= REPLAYS_MOST / 2 - 1 && kept <= REPLAYS_MOST / 2,
           "%u keys of one tenant: %s", kept, err.text);
    expect(is_known(replays, &mine, "run_1") && is_known(replays, &first, "0"),
           "a key was forgotten for another");
    expect(keep(replays, &later, "run_2", &err) == 0, "one tenant leaves no room: %s", err.text);
    expect(keep_all(replays, "third", &err) > REPLAYS_MOST / 8 && err.code == ERR_QUOTA, "%s",
           err.text);
    expect(is_known(replays, &mine, "run_1"), "a key was forgotten for two others");
    replays_free(replays);
}

/* Moves the clock of the file, as days of service do. */
static void let_pass(const char *state, int64_t more_ms)
{
    char path[64];
    int64_t clock_ms = 0;
    (void) snprintf(path, sizeof path, "%s/replays", state);
    int file = open(path, O_RDWR | O_CLOEXEC);
    require(pread(file, &clock_ms, sizeof clock_ms, HEAD_CLOCK) == sizeof clock_ms, "no head");
    clock_ms += more_ms;
    require(pwrite(file, &clock_ms, sizeof clock_ms, HEAD_CLOCK) == sizeof clock_ms, "no head");
    (void) close(file);
}

/* Such as of a session that could not be built, and is asked for again and again. */
TEST(a_key_that_is_kept_again_takes_places_of_its_tenant_only)
{
    char state[] = "/tmp/replays_test.XXXXXX";
    require(mkdtemp(state), "no folder");
    struct replays *replays = opened(state);
    struct replay again = { .caller = "a", .tenant = "a", .key = "k" };
    struct replay other = { .caller = "b", .tenant = "b", .key = "k" };
    error err = { 0 };
    uint32_t kept = 0;
    expect(keep(replays, &other, "ses_1", &err) == 0, "%s", err.text);
    while (kept <= REPLAYS_MOST && keep(replays, &again, "ses_2", &err) == 0)
        kept++;
    expect(err.code == ERR_QUOTA && kept >= REPLAYS_MOST / 2 - 1 && kept <= REPLAYS_MOST / 2,
           "%u places for one key: %s", kept, err.text);
    replays_free(replays);
    replays = opened(state);
    expect(keep(replays, &again, "ses_3", &err) == -1 && err.code == ERR_QUOTA,
           "the next daemon has forgotten whose the places are");
    expect(is_known(replays, &again, "ses_2") && is_known(replays, &other, "ses_1"), "forgotten");
    expect(keep_all(replays, "b", &err) > REPLAYS_MOST / 8, "nobody else has room: %s", err.text);
    replays_free(replays);
    let_pass(state, INT64_C(25) * 3600 * 1000);
    replays = opened(state);
    expect(is_new(replays, &again) && keep(replays, &again, "ses_4", &err) == 0 &&
               is_known(replays, &again, "ses_4"),
           "their day is over: %s", err.text);
    replays_free(replays);
    remove_state(state);
}

TEST(the_next_daemon_knows_them)
{
    char state[] = "/tmp/replays_test.XXXXXX";
    require(mkdtemp(state), "no folder");
    struct replay replay = { .caller = "a", .tenant = "t", .key = "k", .digest = { 1 } };
    struct replay refused = { .caller = "a", .tenant = "t", .key = "r", .digest = { 1 } };
    struct replays *replays = opened(state);
    struct replayed run = { .log_size = 0 };
    error err;
    expect(keep(replays, &replay, "run_1", &err) == 0, "%s", err.text);
    expect(keep(replays, &refused, "run_2", &err) == 0, "%s", err.text);
    replays_drop_last(replays);
    replays_free(replays);

    replays = opened(state);
    expect(replays_find(replays, &replay, &run, &err) == REPLAY_KNOWN &&
               strcmp(run.id, "run_1") == 0 && run.is_of_earlier && run.is_of_boot &&
               run.log_size == 7,
           "the run is '%s'", run.id);
    expect(is_new(replays, &refused), "what was dropped is known");
    expect(keep(replays, &refused, "run_3", &err) == 0 && is_known(replays, &replay, "run_1"),
           "what is new takes the place of what is older");
    replays_free(replays);
    remove_state(state);
}

TEST(two_daemons_never_know_different_things)
{
    char state[] = "/tmp/replays_test.XXXXXX";
    require(mkdtemp(state), "no folder");
    struct replay replay = { .caller = "a", .tenant = "t", .key = "k" };
    struct replay fresh = { .caller = "a", .tenant = "t", .key = "fresh" };
    struct replays *first = opened(state), *second = opened(state);
    struct replayed run;
    error err;
    expect(keep(first, &replay, "run_1", &err) == 0, "%s", err.text);
    expect(replays_are_elsewhere(second) && !replays_are_elsewhere(first), "who has them?");
    expect(replays_find(second, &replay, &run, &err) == -1 && err.code == ERR_UNAVAILABLE,
           "the second of two answers for keys of the first");
    expect(keep(second, &fresh, "run_2", &err) == -1 && err.code == ERR_UNAVAILABLE,
           "the second of two keeps keys");
    expect(replays_take_over(second, &err) == REPLAYS_ELSEWHERE, "it is taken from one that lives");
    replays_free(first);
    expect(replays_take_over(second, &err) == 0 && is_known(second, &replay, "run_1"), "%s",
           err.text);
    replays_free(second);
    remove_state(state);
}

TEST(a_key_lives_for_a_day_of_service)
{
    static const int64_t day_ms = INT64_C(24) * 3600 * 1000;
    char state[] = "/tmp/replays_test.XXXXXX";
    require(mkdtemp(state), "no folder");
    struct replay replay = { .caller = "a", .tenant = "t", .key = "k" };
    struct replays *replays = opened(state);
    error err;
    expect(keep(replays, &replay, "run_1", &err) == 0, "%s", err.text);
    replays_free(replays);
    let_pass(state, day_ms - 60000);
    replays = opened(state);
    expect(is_known(replays, &replay, "run_1"), "it was forgotten before its day was over");
    replays_free(replays);
    let_pass(state, 60000);
    replays = opened(state);
    expect(is_new(replays, &replay), "it is still known after its day");
    expect(keep(replays, &replay, "run_2", &err) == 0 && is_known(replays, &replay, "run_2"), "%s",
           err.text);
    replays_free(replays);
    remove_state(state);
}

TEST(the_ring_goes_round)
{
    char state[] = "/tmp/replays_test.XXXXXX";
    require(mkdtemp(state), "no folder");
    struct replays *replays = opened(state);
    error err;
    char path[64];
    (void) snprintf(path, sizeof path, "%s/replays", state);
    (void) keep_all(replays, "a", &err);
    replays_free(replays);
    let_pass(state, INT64_C(25) * 3600 * 1000);
    replays = opened(state);
    uint32_t kept = keep_all(replays, "b", &err); /* goes on behind what is dead, and round */
    expect(kept >= REPLAYS_MOST / 2 - 1 && kept <= REPLAYS_MOST / 2 + 1, "%u: %s", kept, err.text);
    expect(keep_all(replays, "c", &err) > REPLAYS_MOST / 8, "%s", err.text);
    replays_free(replays);
    replays = opened(state);
    struct replay oldest = { .caller = "b", .tenant = "b", .key = "0" };
    struct replay newest = { .caller = "c", .tenant = "c", .key = "1000" };
    struct replay dead = { .caller = "a", .tenant = "a", .key = "1000" };
    expect(is_known(replays, &oldest, "0") && is_known(replays, &newest, "1000") &&
               is_new(replays, &dead),
           "the next daemon knows others");
    replays_free(replays);
    remove_state(state);
}

TEST(a_file_of_another_kind_has_no_keys)
{
    char state[] = "/tmp/replays_test.XXXXXX", junk[3 * ENTRY_SIZE];
    char path[64];
    require(mkdtemp(state), "no folder");
    (void) snprintf(path, sizeof path, "%s/replays", state);
    memset(junk, 'x', sizeof junk);
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    require(write(file, junk, sizeof junk) == sizeof junk, "no file");
    (void) close(file);
    struct replays *replays = opened(state);
    struct replay replay = { .caller = "a", .tenant = "t", .key = "k" };
    error err;
    expect(is_new(replays, &replay) && keep(replays, &replay, "run_1", &err) == 0, "%s", err.text);
    replays_free(replays);
    replays = opened(state);
    expect(is_known(replays, &replay, "run_1"), "it was not kept");
    replays_free(replays);
    remove_state(state);
}

TEST(keys_are_plain_words)
{
    char lengthy[REPLAY_KEY_MOST + 2];
    memset(lengthy, 'a', sizeof lengthy - 1);
    lengthy[sizeof lengthy - 1] = '\0';
    error err;
    expect(replay_check_key("8e03978e-40d5-43e8-bc93-6894a57f9324", &err) == 0, "a UUID");
    expect(replay_check_key("", &err) < 0 && replay_check_key("a b", &err) < 0 &&
               replay_check_key("\xc3\xbc", &err) < 0 && replay_check_key(lengthy, &err) < 0,
           "what is no key was taken for one");
    expect(replay_check_key(lengthy + 1, &err) == 0, "the longest key was refused");
}

TESTS(CASE(the_same_request_gets_the_same_run), CASE(nobody_takes_the_place_of_a_key_that_lives),
      CASE(a_key_that_is_kept_again_takes_places_of_its_tenant_only),
      CASE(the_next_daemon_knows_them), CASE(two_daemons_never_know_different_things),
      CASE(a_key_lives_for_a_day_of_service), CASE(the_ring_goes_round),
      CASE(a_file_of_another_kind_has_no_keys), CASE(keys_are_plain_words))
