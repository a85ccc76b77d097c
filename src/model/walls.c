/* walls.c - walls.def as a table of names. */
#include "model/walls.h"

#include "base/table.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *name;
    const char *text;
} rows[] = {
#define WALL(name, text) { #name, text },
#include "model/walls.def"
};

_Static_assert(COUNT_OF(rows) <= 64, "a set of walls is one 64-bit number");

const char *wall_name(unsigned wall)
{
    return wall < COUNT_OF(rows) ? rows[wall].name : NULL;
}

const char *wall_text(unsigned wall)
{
    return wall < COUNT_OF(rows) ? rows[wall].text : NULL;
}

int wall_find(const char *name)
{
    for_each(row, rows)
        if (strcmp(row->name, name) == 0)
            return (int) (row - rows);
    return -1;
}
