/* walls.h - the walls of a sandbox by name; a set of walls is a number with one bit for each. */
#pragma once

#include "contract/spawn.h"

#include <stdint.h>

/* "netns"; NULL for a bit that is no wall. */
const char *wall_name(enum wall wall);

/* What the wall does, in a sentence for people. */
const char *wall_text(enum wall wall);

/* The wall of that name; WALLS if there is none. */
enum wall wall_find(const char *name);

static inline uint64_t wall_bit(enum wall wall)
{
    return UINT64_C(1) << (unsigned) wall;
}
