/* turn_test.c - two keys, one place: who is served how often. */
#include "base/test.h"
#include "daemon/turn.h"

/* Serves `count` runs, one at a time, of two keys that always have more. */
static void serve(struct turn *turns, const int64_t *costs, int count, int *ret_served)
{
    for (int i = 0; i < count; i++) {
        int next = turn_is_before(&turns[1], &turns[0]) ? 1 : 0;
        int64_t charged = turn_begins(&turns[next]);
        turn_ends(&turns[next], charged, costs[next]);
        turn_joins(&turns[next], 0);
        ret_served[next]++;
    }
}

TEST(who_runs_long_runs_less_often)
{
    struct turn turns[2] = { { .queued = 100 }, { .queued = 100 } };
    int served[2] = { 0 };
    serve(turns, (int64_t[]){ 1000, 9000 }, 1000, served);
    expect(served[0] > 880 && served[0] < 920, "%d of 1000 were short ones", served[0]);
}

TEST(who_asks_more_gets_no_more)
{
    struct turn turns[2] = { { .queued = 10000 }, { .queued = 1 } };
    int served[2] = { 0 };
    serve(turns, (int64_t[]){ 5000, 5000 }, 100, served);
    expect(served[1] >= 49, "the small one was served %d times of 100", served[1]);
}

TEST(a_pause_is_not_saved_up)
{
    struct turn busy = { .clock_us = 1000000, .queued = 1 };
    struct turn idle = { 0 };
    turn_joins(&idle, busy.clock_us);
    expect(idle.clock_us == busy.clock_us, "it starts at %lld", (long long) idle.clock_us);
    idle.clock_us += 50;
    turn_joins(&idle, busy.clock_us + 1000);
    expect(idle.clock_us == busy.clock_us + 50, "one that waits already is moved");
}

TEST(concurrency_is_held)
{
    struct turn turn = { .active_most = 2, .queued = 3 };
    int64_t charged = turn_begins(&turn);
    (void) turn_begins(&turn);
    expect(!turn_is_ready(&turn), "a third one may begin");
    turn_ends(&turn, charged, 10);
    expect(turn_is_ready(&turn), "nobody follows one that has ended");
    turn_leaves(&turn);
    expect(!turn_is_ready(&turn), "nobody waits, somebody may begin");
}

TESTS(CASE(who_runs_long_runs_less_often), CASE(who_asks_more_gets_no_more),
      CASE(a_pause_is_not_saved_up), CASE(concurrency_is_held))
