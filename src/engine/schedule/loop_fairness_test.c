/* loop_fairness_test.c - many who always have something to send, in the order in which the loop
 * asks.
 */
#include "engine/schedule/loop_fairness.h"

#include "base/table.h"
#include "base/test.h"

/* Something else fills each turn for longer than there is room for all of them. */
enum { CROWD = 10, TURNS = 1000, TAKES_US = 100, BEFORE_US = 1000000 };

/* Each turn has room for `room` of them, which ask in the same order each time. */
static void check(unsigned room)
{
    struct loop_fairness turn = { 0 };
    uint64_t rounds[CROWD] = { 0 };
    unsigned served[CROWD] = { 0 };
    for (uint64_t number = 1; number <= TURNS; number++) {
        int64_t at_us = BEFORE_US;
        loop_fairness_begins(&turn, number, at_us);
        for (unsigned i = 0; i < CROWD; i++) {
            bool goes = loop_fairness_goes_on(&turn, &rounds[i], at_us, (int64_t) room * TAKES_US);
            at_us += goes ? TAKES_US : 0;
            served[i] += goes;
        }
    }
    for (unsigned i = 0; i < CROWD; i++)
        expect(served[i] >= TURNS / CROWD * room / 2, "room for %u: %u was served %u times", room,
               i, served[i]);
}

TEST(no_connection_is_preferred_for_long)
{
    static const unsigned rooms[] = { 1, 3, 5, 9, 10 };
    for_each(room, rooms)
        check(*room);
}

TEST(a_single_connection_never_waits)
{
    struct loop_fairness turn = { 0 };
    uint64_t its_round = 0;
    for (uint64_t number = 1; number < 10; number++) {
        loop_fairness_begins(&turn, number, BEFORE_US);
        expect(loop_fairness_goes_on(&turn, &its_round, BEFORE_US, TAKES_US), "turn %d",
               (int) number);
    }
}

TESTS(CASE(no_connection_is_preferred_for_long), CASE(a_single_connection_never_waits))
