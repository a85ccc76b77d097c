/* groups.h - where control groups can be made on this machine: v2, v1, or both side by side. */
#pragma once

#include "base/error.h"

#include <stddef.h>

enum { GROUP_PLACES_MOST = 8, GROUP_PLACE_TEXT = 320 };

struct group_places {
    size_t count;
    char argument[GROUP_PLACES_MOST][GROUP_PLACE_TEXT]; /* "memory=/sys/fs/cgroup/memory/glovebox" */
};

/* Finds the folders in which glovebox-spawner shall make its groups, and opens the way for it: in
 * cgroup v2 controllers are handed down, and in the private root of a container the processes that
 * live there are moved into a leaf first. None is no failure: the spawner then reports those
 * walls as degraded. */
void groups_find(struct group_places *ret_places);
