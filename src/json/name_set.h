/* name_set.h - the names of members seen in a JSON text, to find duplicates. Only hashes are
 * kept. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct name_set {
    uint64_t *hashes;
    size_t room, count;
};

/* `object` is a number for each object, so that equal names in two objects differ. Returns 1 if the
 * name was there, 0 if it is new, -1 if the table is full. */
int name_set_add(struct name_set *set, uint32_t object, const char *name, size_t size);

void name_set_done(struct name_set *set);
