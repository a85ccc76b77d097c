/* loop_fairness_test.c - many who always have something to send, in the order in which the loop
 * asks.
 */
#include "engine/schedule/loop_fairness.h"

#include "base/table.h"
#include "base/test.h"

enum { CROWD = 10, TURNS = 1000 };

/* Each turn has room for `room` of them, who are asked in the same order each time. */
static void check(unsigned room)
{
    struct loop_fairness turn = { 0 };
    uint64_t rounds[CROWD] = { 0 };
    unsigned served[CROWD] = { 0 };
    for (uint64_t number = 1; number <= TURNS; number++) {
        unsigned left = room;
        loop_fairness_begins(&turn, number);
        for (unsigned i = 0; i < CROWD; i++) {
            bool goes = loop_fairness_goes_on(&turn, &rounds[i], left > 0);
            left -= goes;
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
        loop_fairness_begins(&turn, number);
        expect(loop_fairness_goes_on(&turn, &its_round, true), "turn %d", (int) number);
    }
}

TESTS(CASE(no_connection_is_preferred_for_long), CASE(a_single_connection_never_waits))
