/* loop_share_test.c - keys that send their next request at once, with requests of different
 * length. */
#include "engine/schedule/loop_share.h"

#include "base/table.h"
#include "base/test.h"

enum { KEYS = 3, TURNS = 3000 };

/* Each key always has a request waiting; one begins at a time. */
TEST(each_key_gets_the_same_time_however_long_its_requests_take)
{
    static const int64_t takes_us[KEYS] = { 50, 900, 9900 };
    struct loop_share shares[KEYS] = { 0 };
    int64_t spent_us[KEYS] = { 0 };
    int64_t now_us = 0;
    for (unsigned turn = 0; turn < TURNS; turn++) {
        unsigned next = 0;
        for (unsigned i = 0; i < KEYS; i++) {
            loop_share_asks(&shares[i], now_us);
            if (loop_share_is_before(&shares[i], &shares[next]))
                next = i;
        }
        int64_t charged_us = loop_share_begins(&shares[next], &now_us);
        loop_share_used(&shares[next], charged_us, takes_us[next]);
        spent_us[next] += takes_us[next] + LOOP_SHARE_MIN_US;
    }
    for (unsigned i = 1; i < KEYS; i++) {
        int64_t apart_us = spent_us[i] - spent_us[0];
        expect(apart_us > -20000 && apart_us < 20000,
               "key %u was served for %lld us, the first %lld", i, (long long) spent_us[i],
               (long long) spent_us[0]);
    }
}

/* Its clock is set to that of the others: it is served first once, and then takes turns with
 * them. */
TEST(a_key_that_was_silent_has_saved_nothing_up)
{
    struct loop_share busy = { 0 }, late = { 0 };
    int64_t now_us = 0;
    for (unsigned turn = 0; turn < TURNS; turn++) {
        loop_share_asks(&busy, now_us);
        loop_share_used(&busy, loop_share_begins(&busy, &now_us), 1000);
    }
    unsigned in_a_row = 0, most = 0;
    for (unsigned turn = 0; turn < 100; turn++) {
        loop_share_asks(&busy, now_us);
        loop_share_asks(&late, now_us);
        struct loop_share *next = loop_share_is_before(&busy, &late) ? &busy : &late;
        loop_share_used(next, loop_share_begins(next, &now_us), 1000);
        in_a_row = next == &late ? in_a_row + 1 : 0;
        most = in_a_row > most ? in_a_row : most;
    }
    expect(most >= 1 && most <= 2, "it was served %u times in a row", most);
}

/* If one request was charged too little, the next ones are charged more. */
TEST(a_request_that_takes_longer_than_usual_is_charged_in_full)
{
    struct loop_share share = { 0 };
    int64_t now_us = 0;
    for (unsigned i = 0; i < 2; i++) {
        int64_t before_us = share.clock_us;
        int64_t charged_us = loop_share_begins(&share, &now_us);
        loop_share_used(&share, charged_us, 70000);
        expect(share.clock_us - before_us == 70000 + LOOP_SHARE_MIN_US, "request %u", i);
    }
}

TESTS(CASE(each_key_gets_the_same_time_however_long_its_requests_take),
      CASE(a_key_that_was_silent_has_saved_nothing_up),
      CASE(a_request_that_takes_longer_than_usual_is_charged_in_full))
