/* walls.h - the names of the walls. A set of walls is a number with a bit for each; the bits are
 * those of enum wall (contract/spawn.h), which comes from the same table. */
#pragma once

#include <stdint.h>

/* The name of the wall with this bit position, such as "netns"; NULL if there is none. */
const char *wall_name(unsigned wall);

static inline uint64_t wall_bit(unsigned wall)
{
    return UINT64_C(1) << wall;
}
