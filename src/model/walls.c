/* walls.c - walls.def as a table of names. */
#include "model/walls.h"

#include "base/table.h"

#include <stddef.h>

static const char *const rows[] = {
#define WALL(name, text) #name,
#include "model/walls.def"
};

_Static_assert(COUNT_OF(rows) <= 64, "a set of walls is one 64-bit number");

const char *wall_name(unsigned wall)
{
    return wall < COUNT_OF(rows) ? rows[wall] : NULL;
}
