/* fair_share_test.c - two keys and one slot: how often each is served. */
#include "base/table.h"
#include "base/test.h"
#include "engine/schedule/fair_share.h"

/* Serves `count` runs, one at a time, of two keys that always have more. */
static void serve(struct fair_share *turns, const int64_t *costs, int count, int *ret_served)
{
    for (int i = 0; i < count; i++) {
        int next = fair_share_is_before(&turns[1], &turns[0]) ? 1 : 0;
        int64_t charged = fair_share_begins(&turns[next]);
        fair_share_ends(&turns[next], charged, costs[next]);
        fair_share_joins(&turns[next], 0);
        ret_served[next]++;
    }
}

TEST(long_runs_get_fewer_turns)
{
    struct fair_share turns[2] = { { .queued = 100 }, { .queued = 100 } };
    int served[2] = { 0 };
    serve(turns, (int64_t[]){ 1000, 9000 }, 1000, served);
    expect(served[0] > 880 && served[0] < 920, "%d of 1000 were short ones", served[0]);
}

TEST(more_requests_give_no_larger_share)
{
    struct fair_share turns[2] = { { .queued = 10000 }, { .queued = 1 } };
    int served[2] = { 0 };
    serve(turns, (int64_t[]){ 5000, 5000 }, 100, served);
    expect(served[1] >= 49, "the small one was served %d times of 100", served[1]);
}

TEST(a_pause_is_not_saved_up)
{
    struct fair_share busy = { .clock_us = 1000000, .queued = 1 };
    struct fair_share idle = { 0 };
    fair_share_joins(&idle, busy.clock_us);
    expect(idle.clock_us == busy.clock_us, "it starts at %lld", (long long) idle.clock_us);
    idle.clock_us += 50;
    fair_share_joins(&idle, busy.clock_us + 1000);
    expect(idle.clock_us == busy.clock_us + 50, "one that waits already is moved");
}

TEST(concurrency_is_held)
{
    struct fair_share turn = { .active_max = 2, .queued = 3 };
    int64_t charged = fair_share_begins(&turn);
    (void) fair_share_begins(&turn);
    expect(!fair_share_is_ready(&turn), "a third one may begin");
    fair_share_ends(&turn, charged, 10);
    expect(fair_share_is_ready(&turn), "nobody follows one that has ended");
    fair_share_leaves(&turn);
    expect(!fair_share_is_ready(&turn), "nobody waits, somebody may begin");
}

TEST(what_was_charged_at_the_start_is_replaced_by_what_was_used)
{
    struct fair_share turn = { .queued = 2, .usual_us = 3000 };
    int64_t charged = fair_share_begins(&turn);
    expect(charged == 3000 && turn.clock_us == 3000, "charged %lld", (long long) charged);
    fair_share_ends(&turn, charged, 500);
    expect(turn.usual_us == (7 * 3000 + 500) / 8, "the mean: %lld", (long long) turn.usual_us);
    expect(turn.clock_us == 500, "it used 500, its clock shows %lld", (long long) turn.clock_us);
    fair_share_ends(&turn, fair_share_begins(&turn), 0);
    expect(turn.clock_us == 700, "the least that a run costs: %lld", (long long) turn.clock_us);

    struct fair_share first = { .queued = 1 };
    expect(fair_share_begins(&first) == 2000, "one that is not known yet is charged 2 ms");
    fair_share_ends(&first, 2000, 900);
    expect(first.clock_us == 900 && first.usual_us == 900, "then what it used");
}

/* Fills the slots, one key after another taking all it may; returns what is left. */
static uint32_t fill(uint32_t slots, uint32_t keys, uint32_t *ret_first)
{
    uint32_t held[16] = { 0 };
    uint32_t all = 0;
    for (uint32_t i = 0; i < keys; i++)
        while (all < slots && held[i] < fair_share_slots_max(slots, all - held[i])) {
            held[i]++;
            all++;
        }
    *ret_first = held[0];
    return slots - all;
}

TEST(the_last_slots_are_reserved_for_accounts_without_one)
{
    static const struct {
        uint32_t slots, keys, first, left;
    } rows[] = { { 1, 1, 1, 0 },   { 2, 1, 1, 1 },      { 4, 1, 3, 1 },    { 8, 1, 6, 2 },
                 { 8, 2, 6, 1 },   { 8, 3, 6, 0 },      { 16, 1, 12, 4 },  { 16, 2, 12, 1 },
                 { 64, 3, 48, 1 }, { 256, 1, 192, 64 }, { 256, 4, 192, 1 } };
    for_each(row, rows) {
        uint32_t first;
        uint32_t left = fill(row->slots, row->keys, &first);
        expect(first == row->first && left == row->left, "%u slots, %u keys: %u, and %u are left",
               row->slots, row->keys, first, left);
    }
}

TEST(the_account_that_holds_less_gets_the_free_slot)
{
    expect(fair_share_slots_max(8, 1) == 5, "6 of 8 may be %u beside 1",
           fair_share_slots_max(8, 1));
    expect(fair_share_slots_max(8, 3) == 3, "%u beside 3", fair_share_slots_max(8, 3));
    expect(fair_share_slots_max(3, 0) == 2, "%u of three", fair_share_slots_max(3, 0));
    expect(fair_share_slots_max(8, 20) == 1, "%u beside more than there are",
           fair_share_slots_max(8, 20));
}

TESTS(CASE(long_runs_get_fewer_turns), CASE(more_requests_give_no_larger_share),
      CASE(a_pause_is_not_saved_up), CASE(concurrency_is_held),
      CASE(what_was_charged_at_the_start_is_replaced_by_what_was_used),
      CASE(the_last_slots_are_reserved_for_accounts_without_one),
      CASE(the_account_that_holds_less_gets_the_free_slot))
