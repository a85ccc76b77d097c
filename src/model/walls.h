/* walls.h - the walls of a sandbox by name. A set of walls is a number with one bit for each; the
 * bits are those of enum wall (contract/spawn.h), which comes from the same table. */
#pragma once

#include <stdint.h>

/* "netns" for the wall with that bit's position; NULL if there is none. */
const char *wall_name(unsigned wall);

static inline uint64_t wall_bit(unsigned wall)
{
    return UINT64_C(1) << wall;
}
