/* replays_test.c - the same request gets the same run, and nothing else does. */
#include "daemon/replays.h"

#include "base/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(the_same_request_gets_the_same_run)
{
    struct replays *replays = replays_new();
    require(replays, "no memory");
    struct replay one = { .caller = "a", .key = "k", .digest = { 1 } };
    struct replay other_body = { .caller = "a", .key = "k", .digest = { 2 } };
    struct replay other_caller = { .caller = "b", .key = "k", .digest = { 2 } };
    char run[RUN_ID_SIZE];
    error err;
    expect(replays_find(replays, &one, run, &err) == REPLAY_NEW, "it is known before it came");
    replays_keep(replays, &one, "run_1");
    expect(replays_find(replays, &one, run, &err) == REPLAY_KNOWN && strcmp(run, "run_1") == 0,
           "the run is '%s'", run);
    expect(replays_find(replays, &other_body, run, &err) == -1 && err.code == ERR_CONFLICT,
           "another body was taken for the same");
    expect(replays_find(replays, &other_caller, run, &err) == REPLAY_NEW, "callers meet");
    replays_free(replays);
}

TEST(the_oldest_goes_when_there_are_too_many)
{
    struct replays *replays = replays_new();
    require(replays, "no memory");
    char key[16];
    char run[RUN_ID_SIZE];
    error err;
    struct replay replay = { .caller = "", .key = key };
    for (int i = 0; i < 2 * REPLAYS_MOST + 1; i++) {
        (void) snprintf(key, sizeof key, "%d", i);
        replays_keep(replays, &replay, key);
    }
    (void) snprintf(key, sizeof key, "%d", REPLAYS_MOST);
    expect(replays_find(replays, &replay, run, &err) == REPLAY_NEW, "the oldest is still there");
    for (int i = REPLAYS_MOST + 1; i < 2 * REPLAYS_MOST + 1; i++) {
        (void) snprintf(key, sizeof key, "%d", i);
        expect(replays_find(replays, &replay, run, &err) == REPLAY_KNOWN && strcmp(run, key) == 0,
               "%s was forgotten", key);
    }
    replays_free(replays);
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

TESTS(CASE(the_same_request_gets_the_same_run), CASE(the_oldest_goes_when_there_are_too_many),
      CASE(keys_are_plain_words))
