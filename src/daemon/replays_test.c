/* replays_test.c - the same request gets the same run, and nothing else does. */
#include "daemon/replays.h"

#include "base/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TEST(the_same_request_gets_the_same_run)
{
    struct replays *replays;
    error err;
    require(replays_open(NULL, &replays, &err) == 0, "%s", err.text);
    struct replay one = { .caller = "a", .key = "k", .digest = { 1 } };
    struct replay other_body = { .caller = "a", .key = "k", .digest = { 2 } };
    struct replay other_caller = { .caller = "b", .key = "k", .digest = { 2 } };
    struct replayed run;
    expect(replays_find(replays, &one, &run, &err) == REPLAY_NEW, "it is known before it came");
    expect(replays_keep(replays, &one, &(struct replayed){ .run = "run_1" }, &err) == 0, "%s",
           err.text);
    expect(replays_find(replays, &one, &run, &err) == REPLAY_KNOWN && strcmp(run.run, "run_1") == 0,
           "the run is '%s'", run.run);
    expect(replays_find(replays, &other_body, &run, &err) == -1 && err.code == ERR_CONFLICT,
           "another body was taken for the same");
    expect(replays_find(replays, &other_caller, &run, &err) == REPLAY_NEW, "callers meet");
    replays_free(replays);
}

TEST(the_oldest_goes_when_there_are_too_many)
{
    struct replays *replays;
    error err;
    require(replays_open(NULL, &replays, &err) == 0, "%s", err.text);
    char key[16];
    struct replayed run;
    struct replay replay = { .caller = "", .key = key };
    for (int i = 0; i < 2 * REPLAYS_MOST + 1; i++) {
        (void) snprintf(key, sizeof key, "%d", i);
        struct replayed begun = { .log_size = 0 };
        (void) snprintf(begun.run, sizeof begun.run, "%s", key);
        expect(replays_keep(replays, &replay, &begun, &err) == 0, "%s", err.text);
    }
    (void) snprintf(key, sizeof key, "%d", REPLAYS_MOST);
    expect(replays_find(replays, &replay, &run, &err) == REPLAY_NEW, "the oldest is still there");
    for (int i = REPLAYS_MOST + 1; i < 2 * REPLAYS_MOST + 1; i++) {
        (void) snprintf(key, sizeof key, "%d", i);
        expect(replays_find(replays, &replay, &run, &err) == REPLAY_KNOWN &&
                   strcmp(run.run, key) == 0,
               "%s was forgotten", key);
    }
    replays_free(replays);
}

TEST(the_next_daemon_knows_them)
{
    char state[] = "/tmp/replays_test.XXXXXX";
    require(mkdtemp(state), "no folder");
    struct replay replay = { .caller = "a", .key = "k", .digest = { 1 } };
    struct replay refused = { .caller = "a", .key = "r", .digest = { 1 } };
    struct replays *replays, *second;
    struct replayed run = { .log_size = 0 };
    error err;
    require(replays_open(state, &replays, &err) == 0, "%s", err.text);
    struct replayed begun = { .run = "run_1", .log_size = 7 };
    expect(replays_keep(replays, &replay, &begun, &err) == 0, "%s", err.text);
    expect(replays_keep(replays, &refused, &begun, &err) == 0, "%s", err.text);
    replays_drop_last(replays);

    require(replays_open(state, &second, &err) == 0, "%s", err.text);
    expect(replays_find(second, &replay, &run, &err) == REPLAY_NEW, "two daemons share the file");
    replays_free(second);

    replays_free(replays);
    require(replays_open(state, &replays, &err) == 0, "%s", err.text);
    expect(replays_find(replays, &replay, &run, &err) == REPLAY_KNOWN &&
               strcmp(run.run, "run_1") == 0 && run.is_of_earlier && run.log_size == 7,
           "the run is '%s'", run.run);
    expect(replays_find(replays, &refused, &run, &err) == REPLAY_NEW, "what was dropped is known");
    expect(replays_keep(replays, &refused, &begun, &err) == 0 &&
               replays_find(replays, &replay, &run, &err) == REPLAY_KNOWN,
           "what is new takes the place of what is older");
    replays_free(replays);
    char path[sizeof state + 8];
    (void) snprintf(path, sizeof path, "%s/replays", state);
    (void) unlink(path);
    (void) rmdir(state);
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
      CASE(the_next_daemon_knows_them), CASE(keys_are_plain_words))
