/* run_states_test.c - the transition between every pair of states, for runs and cells. */
#include "base/test.h"

#include "model/run_states.h"

#include <string.h>

/* Rows: from; columns: to, in the order queued building loading running stopping collecting gating
 * done. */
static const char *const may_follow[STATES_COLUMNS][RUN_STATES] = {
    [STATES_OF_ONESHOT] = { [RUN_QUEUED] = "-b-----d",
                            [RUN_BUILDING] = "--l----d",
                            [RUN_LOADING] = "---r---d",
                            [RUN_RUNNING] = "----scgd",
                            [RUN_STOPPING] = "-----cgd",
                            [RUN_COLLECTING] = "------gd",
                            [RUN_GATING] = "-------d",
                            [RUN_DONE] = "--------" },
    [STATES_OF_CELL] = { [RUN_QUEUED] = "---r--gd",
                         [RUN_BUILDING] = "--------",
                         [RUN_LOADING] = "--------",
                         [RUN_RUNNING] = "----scgd",
                         [RUN_STOPPING] = "-----cgd",
                         [RUN_COLLECTING] = "------gd",
                         [RUN_GATING] = "-------d",
                         [RUN_DONE] = "--------" },
};

TEST(every_pair_of_states_is_allowed_or_refused_as_documented)
{
    for (unsigned column = 0; column < STATES_COLUMNS; column++)
        for (unsigned from = 0; from < RUN_STATES; from++) {
            require(strlen(may_follow[column][from]) == RUN_STATES, "the table of this test");
            for (unsigned to = 0; to < RUN_STATES; to++) {
                bool wanted = may_follow[column][from][to] != '-';
                expect(run_state_may_follow(column, from, to) == wanted, "column %u: %s to %s",
                       column, run_state_name(from), run_state_name(to));
            }
        }
}

TEST(a_state_never_leads_back)
{
    for (unsigned column = 0; column < STATES_COLUMNS; column++)
        for (unsigned from = 0; from < RUN_STATES; from++)
            for (unsigned to = 0; to <= from; to++)
                expect(!run_state_may_follow(column, from, to), "column %u: %s to %s", column,
                       run_state_name(from), run_state_name(to));
}

TEST(bounds_of_states)
{
    static const int64_t bounds[STATES_COLUMNS][RUN_STATES] = {
        [STATES_OF_ONESHOT] = { 60000, 70000, 30000, 0, 1000, 30000, 0, 0 },
        [STATES_OF_CELL] = { 0, 0, 0, 0, 2000, 2000, 0, 0 },
    };
    for (unsigned column = 0; column < STATES_COLUMNS; column++)
        for (unsigned state = 0; state < RUN_STATES; state++)
            expect(run_state_max_ms(column, state) == bounds[column][state],
                   "column %u: %s lasts %lld ms", column, run_state_name(state),
                   (long long) run_state_max_ms(column, state));
}

TESTS(CASE(every_pair_of_states_is_allowed_or_refused_as_documented),
      CASE(a_state_never_leads_back), CASE(bounds_of_states))
