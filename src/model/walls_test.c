/* walls_test.c - names and bits of walls. */
#include "model/walls.h"

#include "base/test.h"
#include "contract/spawn.h"

#include <string.h>

TEST(every_wall_has_a_name)
{
    for (unsigned wall = 0; wall < WALLS; wall++) {
        const char *name = wall_name(wall);
        expect(name && *name, "wall %u has no name", wall);
    }
    expect(strcmp(wall_name(WALL_netns), "netns") == 0, "the table is out of step with the enum");
}

TEST(what_is_no_wall_has_no_name)
{
    expect(!wall_name(WALLS), "one past the last");
    expect(!wall_name(~0U), "far past the last");
}

TEST(a_set_of_walls_has_one_bit_for_each)
{
    uint64_t all = 0;
    for (unsigned wall = 0; wall < WALLS; wall++) {
        expect((all & wall_bit(wall)) == 0, "wall %u shares a bit", wall);
        all |= wall_bit(wall);
    }
    expect(all == wall_bit(WALLS) - 1, "the set has holes");
}

TESTS(CASE(every_wall_has_a_name), CASE(what_is_no_wall_has_no_name),
      CASE(a_set_of_walls_has_one_bit_for_each))
