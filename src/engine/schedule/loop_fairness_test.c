/* loop_fairness_test.c - many senders that always have something to send, in the order in which the
 * loop calls them. */
#include "engine/schedule/loop_fairness.h"

#include "base/table.h"
#include "base/test.h"

/* Other work fills each turn for longer than the time for all of them. */
enum { CROWD = 10, TURNS = 1000, TAKES_US = 100, BEFORE_US = 1000000 };

/* Each turn has time for `room` of them, which ask in the same order each time. */
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

/* Many sandboxes of one tenant always have something to send, and come first in the loop. */
TEST(a_tenant_with_one_sandbox_never_waits_for_one_with_many)
{
    struct loop_tenants turn = { .all_room_us = INT64_C(50) * TAKES_US,
                                 .tenant_room_us = INT64_C(3) * TAKES_US };
    struct loop_rounds many[CROWD] = { { 0 } }, one = { 0 };
    unsigned served[CROWD] = { 0 };
    for (uint64_t number = 1; number <= TURNS; number++) {
        int64_t at_us = BEFORE_US;
        unsigned of_many = 0;
        for (unsigned i = 0; i < CROWD; i++) {
            bool goes = loop_tenants_go_on(&turn, 1, &many[i], number, at_us);
            at_us += goes ? TAKES_US : 0;
            served[i] += goes;
            of_many += goes;
        }
        expect(of_many > 0 && of_many <= 3, "turn %d: %u of many", (int) number, of_many);
        expect(loop_tenants_go_on(&turn, 2, &one, number, at_us), "turn %d", (int) number);
    }
    for (unsigned i = 0; i < CROWD; i++)
        expect(served[i] >= TURNS / CROWD, "%u was served %u times", i, served[i]);
}

/* However many tenants there are, all together have a bound, and each is served. */
TEST(many_tenants_share_the_room_of_all)
{
    struct loop_tenants turn = { .all_room_us = INT64_C(3) * TAKES_US,
                                 .tenant_room_us = INT64_C(2) * TAKES_US };
    struct loop_rounds its[CROWD] = { { 0 } };
    unsigned served[CROWD] = { 0 };
    for (uint64_t number = 1; number <= TURNS; number++) {
        int64_t at_us = BEFORE_US;
        for (unsigned i = 0; i < CROWD; i++) {
            bool goes = loop_tenants_go_on(&turn, i, &its[i], number, at_us);
            at_us += goes ? TAKES_US : 0;
            served[i] += goes;
        }
        expect(at_us <= BEFORE_US + INT64_C(3) * TAKES_US, "turn %d took %d us", (int) number,
               (int) (at_us - BEFORE_US));
    }
    for (unsigned i = 0; i < CROWD; i++)
        expect(served[i] >= TURNS / CROWD * 3 / 2, "%u was served %u times", i, served[i]);
}

TESTS(CASE(a_tenant_with_one_sandbox_never_waits_for_one_with_many),
      CASE(many_tenants_share_the_room_of_all), CASE(no_connection_is_preferred_for_long),
      CASE(a_single_connection_never_waits))
