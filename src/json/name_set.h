/* name_set.h - the names of members that a JSON text has had, so that one that stands twice is
 * found. Only their hashes are kept. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct name_set {
    uint64_t *hashes;
    size_t room, count;
};

/* `object` tells the names of one object from those of another. Returns 1 if the name was there, 0
 * if it is new, -1 if the table cannot take it. */
int name_set_add(struct name_set *set, uint32_t object, const char *name, size_t size);

void name_set_done(struct name_set *set);
