/* idempotency_test.c - the same request gets the same run; no key is dropped before its day has
 * passed, whatever keys other tenants send and whatever the wall clock does. */
#include "engine/store/idempotency.h"

#include "base/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEAD_CLOCK = 8, ENTRY_SIZE = 128 }; /* offsets in the file */

static struct idempotency *opened(const char *state)
{
    struct idempotency *idempotency = NULL;
    error err;
    require(
        idempotency_open(&(struct idempotency_settings){ .state = state }, &idempotency, &err) == 0,
        "%s", err.text);
    return idempotency;
}

static int keep(struct idempotency *idempotency, const struct idempotency_entry *replay,
                const char *id, error *err)
{
    struct replayed begun = { .log_size = 7 };
    (void) snprintf(begun.id, sizeof begun.id, "%s", id);
    return idempotency_keep(idempotency, replay, &begun, err);
}

static bool is_known(struct idempotency *idempotency, const struct idempotency_entry *replay,
                     const char *id)
{
    struct replayed found;
    error err;
    return idempotency_find(idempotency, replay, &found, &err) == IDEMPOTENCY_KNOWN &&
           strcmp(found.id, id) == 0;
}

static bool is_new(struct idempotency *idempotency, const struct idempotency_entry *replay)
{
    struct replayed found;
    error err;
    return idempotency_find(idempotency, replay, &found, &err) == IDEMPOTENCY_NEW;
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
    struct idempotency *idempotency = opened(NULL);
    error err;
    struct idempotency_entry one = { .caller = "a", .tenant = "t", .key = "k", .digest = { 1 } };
    struct idempotency_entry other_body = {
        .caller = "a", .tenant = "t", .key = "k", .digest = { 2 }
    };
    struct idempotency_entry other_caller = {
        .caller = "b", .tenant = "t", .key = "k", .digest = { 2 }
    };
    struct replayed run;
    expect(is_new(idempotency, &one), "it is known before it came");
    expect(keep(idempotency, &one, "run_1", &err) == 0, "%s", err.text);
    expect(is_known(idempotency, &one, "run_1"), "it is not known");
    expect(idempotency_find(idempotency, &other_body, &run, &err) == -1 && err.code == ERR_CONFLICT,
           "another body was taken for the same");
    expect(is_new(idempotency, &other_caller), "callers meet");
    idempotency_free(idempotency);
}

/* Gives  how many keys of this tenant are stored before one is refused. */
static uint32_t keep_all(struct idempotency *idempotency, const char *tenant, error *err)
{
    char key[16];
    struct idempotency_entry replay = { .caller = tenant, .tenant = tenant, .key = key };
    for (uint32_t i = 0; i <= IDEMPOTENCY_MAX; i++) {
        (void) snprintf(key, sizeof key, "%u", i);
        if (keep(idempotency, &replay, key, err) < 0)
            return i;
    }
    return UINT32_MAX;
}

TEST(live_keys_are_not_evicted)
{
    struct idempotency *idempotency = opened(NULL);
    error err;
    struct idempotency_entry mine = { .caller = "mine", .tenant = "mine", .key = "k" };
    struct idempotency_entry later = { .caller = "mine", .tenant = "mine", .key = "later" };
    struct idempotency_entry first = { .caller = "other", .tenant = "other", .key = "0" };
    expect(keep(idempotency, &mine, "run_1", &err) == 0, "%s", err.text);
    uint32_t kept = keep_all(idempotency, "other", &err);
    expect(err.code == ERR_QUOTA && kept >= IDEMPOTENCY_MAX / 2 - 1 && kept <= IDEMPOTENCY_MAX / 2,
           "%u keys of one tenant: %s", kept, err.text);
    expect(is_known(idempotency, &mine, "run_1") && is_known(idempotency, &first, "0"),
           "a key was forgotten for another");
    expect(keep(idempotency, &later, "run_2", &err) == 0, "one tenant leaves no room: %s",
           err.text);
    expect(keep_all(idempotency, "third", &err) > IDEMPOTENCY_MAX / 8 && err.code == ERR_QUOTA,
           "%s", err.text);
    expect(is_known(idempotency, &mine, "run_1"), "a key was forgotten for two others");
    idempotency_free(idempotency);
}

/* Moves the clock in the file, like days of service. */
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

/* For example of a session that could not be built and is requested again and again. */
TEST(a_key_that_is_kept_again_takes_places_of_its_tenant_only)
{
    char state[] = "/tmp/replays_test.XXXXXX";
    require(mkdtemp(state), "no folder");
    struct idempotency *idempotency = opened(state);
    struct idempotency_entry again = { .caller = "a", .tenant = "a", .key = "k" };
    struct idempotency_entry other = { .caller = "b", .tenant = "b", .key = "k" };
    error err = { 0 };
    uint32_t kept = 0;
    expect(keep(idempotency, &other, "ses_1", &err) == 0, "%s", err.text);
    while (kept <= IDEMPOTENCY_MAX && keep(idempotency, &again, "ses_2", &err) == 0)
        kept++;
    expect(err.code == ERR_QUOTA && kept >= IDEMPOTENCY_MAX / 2 - 1 && kept <= IDEMPOTENCY_MAX / 2,
           "%u places for one key: %s", kept, err.text);
    idempotency_free(idempotency);
    idempotency = opened(state);
    expect(keep(idempotency, &again, "ses_3", &err) == -1 && err.code == ERR_QUOTA,
           "the next daemon has forgotten whose the places are");
    expect(is_known(idempotency, &again, "ses_2") && is_known(idempotency, &other, "ses_1"),
           "forgotten");
    expect(keep_all(idempotency, "b", &err) > IDEMPOTENCY_MAX / 8, "nobody else has room: %s",
           err.text);
    idempotency_free(idempotency);
    let_pass(state, INT64_C(25) * 3600 * 1000);
    idempotency = opened(state);
    expect(is_new(idempotency, &again) && keep(idempotency, &again, "ses_4", &err) == 0 &&
               is_known(idempotency, &again, "ses_4"),
           "their day is over: %s", err.text);
    idempotency_free(idempotency);
    remove_state(state);
}

TEST(the_next_daemon_knows_them)
{
    char state[] = "/tmp/replays_test.XXXXXX";
    require(mkdtemp(state), "no folder");
    struct idempotency_entry replay = { .caller = "a", .tenant = "t", .key = "k", .digest = { 1 } };
    struct idempotency_entry refused = {
        .caller = "a", .tenant = "t", .key = "r", .digest = { 1 }
    };
    struct idempotency *idempotency = opened(state);
    struct replayed run = { .log_size = 0 };
    error err;
    expect(keep(idempotency, &replay, "run_1", &err) == 0, "%s", err.text);
    expect(keep(idempotency, &refused, "run_2", &err) == 0, "%s", err.text);
    idempotency_drop_last(idempotency);
    idempotency_free(idempotency);

    idempotency = opened(state);
    expect(idempotency_find(idempotency, &replay, &run, &err) == IDEMPOTENCY_KNOWN &&
               strcmp(run.id, "run_1") == 0 && run.is_of_earlier && run.is_of_boot &&
               run.log_size == 7,
           "the run is '%s'", run.id);
    expect(is_new(idempotency, &refused), "what was dropped is known");
    expect(keep(idempotency, &refused, "run_3", &err) == 0 &&
               is_known(idempotency, &replay, "run_1"),
           "what is new takes the place of what is older");
    idempotency_free(idempotency);
    remove_state(state);
}

TEST(two_daemons_never_know_different_things)
{
    char state[] = "/tmp/replays_test.XXXXXX";
    require(mkdtemp(state), "no folder");
    struct idempotency_entry replay = { .caller = "a", .tenant = "t", .key = "k" };
    struct idempotency_entry fresh = { .caller = "a", .tenant = "t", .key = "fresh" };
    struct idempotency *first = opened(state), *second = opened(state);
    struct replayed run;
    error err;
    expect(keep(first, &replay, "run_1", &err) == 0, "%s", err.text);
    expect(idempotency_are_elsewhere(second) && !idempotency_are_elsewhere(first), "who has them?");
    expect(idempotency_find(second, &replay, &run, &err) == -1 && err.code == ERR_UNAVAILABLE,
           "the second of two answers for keys of the first");
    expect(keep(second, &fresh, "run_2", &err) == -1 && err.code == ERR_UNAVAILABLE,
           "the second of two keeps keys");
    expect(idempotency_take_over(second, &err) == IDEMPOTENCY_ELSEWHERE,
           "it is taken from one that lives");
    idempotency_free(first);
    expect(idempotency_take_over(second, &err) == 0 && is_known(second, &replay, "run_1"), "%s",
           err.text);
    idempotency_free(second);
    remove_state(state);
}

TEST(a_key_lives_for_a_day_of_service)
{
    static const int64_t day_ms = INT64_C(24) * 3600 * 1000;
    char state[] = "/tmp/replays_test.XXXXXX";
    require(mkdtemp(state), "no folder");
    struct idempotency_entry replay = { .caller = "a", .tenant = "t", .key = "k" };
    struct idempotency *idempotency = opened(state);
    error err;
    expect(keep(idempotency, &replay, "run_1", &err) == 0, "%s", err.text);
    idempotency_free(idempotency);
    let_pass(state, day_ms - 60000);
    idempotency = opened(state);
    expect(is_known(idempotency, &replay, "run_1"), "it was forgotten before its day was over");
    idempotency_free(idempotency);
    let_pass(state, 60000);
    idempotency = opened(state);
    expect(is_new(idempotency, &replay), "it is still known after its day");
    expect(keep(idempotency, &replay, "run_2", &err) == 0 &&
               is_known(idempotency, &replay, "run_2"),
           "%s", err.text);
    idempotency_free(idempotency);
    remove_state(state);
}

TEST(the_ring_goes_round)
{
    char state[] = "/tmp/replays_test.XXXXXX";
    require(mkdtemp(state), "no folder");
    struct idempotency *idempotency = opened(state);
    error err;
    char path[64];
    (void) snprintf(path, sizeof path, "%s/replays", state);
    (void) keep_all(idempotency, "a", &err);
    idempotency_free(idempotency);
    let_pass(state, INT64_C(25) * 3600 * 1000);
    idempotency = opened(state);
    uint32_t kept = keep_all(idempotency, "b", &err); /* goes on behind what is dead, and round */
    expect(kept >= IDEMPOTENCY_MAX / 2 - 1 && kept <= IDEMPOTENCY_MAX / 2 + 1, "%u: %s", kept,
           err.text);
    expect(keep_all(idempotency, "c", &err) > IDEMPOTENCY_MAX / 8, "%s", err.text);
    idempotency_free(idempotency);
    idempotency = opened(state);
    struct idempotency_entry oldest = { .caller = "b", .tenant = "b", .key = "0" };
    struct idempotency_entry newest = { .caller = "c", .tenant = "c", .key = "1000" };
    struct idempotency_entry dead = { .caller = "a", .tenant = "a", .key = "1000" };
    expect(is_known(idempotency, &oldest, "0") && is_known(idempotency, &newest, "1000") &&
               is_new(idempotency, &dead),
           "the next daemon knows others");
    idempotency_free(idempotency);
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
    struct idempotency *idempotency = opened(state);
    struct idempotency_entry replay = { .caller = "a", .tenant = "t", .key = "k" };
    error err;
    expect(is_new(idempotency, &replay) && keep(idempotency, &replay, "run_1", &err) == 0, "%s",
           err.text);
    idempotency_free(idempotency);
    idempotency = opened(state);
    expect(is_known(idempotency, &replay, "run_1"), "it was not kept");
    idempotency_free(idempotency);
    remove_state(state);
}

TEST(keys_are_plain_words)
{
    char lengthy[IDEMPOTENCY_KEY_MAX + 2];
    memset(lengthy, 'a', sizeof lengthy - 1);
    lengthy[sizeof lengthy - 1] = '\0';
    error err;
    expect(idempotency_check_key("8e03978e-40d5-43e8-bc93-6894a57f9324", &err) == 0, "a UUID");
    expect(idempotency_check_key("", &err) < 0 && idempotency_check_key("a b", &err) < 0 &&
               idempotency_check_key("\xc3\xbc", &err) < 0 &&
               idempotency_check_key(lengthy, &err) < 0,
           "what is no key was taken for one");
    expect(idempotency_check_key(lengthy + 1, &err) == 0, "the longest key was refused");
}

TESTS(CASE(the_same_request_gets_the_same_run), CASE(live_keys_are_not_evicted),
      CASE(a_key_that_is_kept_again_takes_places_of_its_tenant_only),
      CASE(the_next_daemon_knows_them), CASE(two_daemons_never_know_different_things),
      CASE(a_key_lives_for_a_day_of_service), CASE(the_ring_goes_round),
      CASE(a_file_of_another_kind_has_no_keys), CASE(keys_are_plain_words))
