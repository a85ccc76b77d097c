/* cgroup_setup.h - where control groups can be made on this machine: v2, v1, or both. */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <sys/types.h>

enum { GROUP_PLACES_MAX = 8, GROUP_PLACE_TEXT = 320 };

struct group_places {
    size_t count;
    char argument[GROUP_PLACES_MAX][GROUP_PLACE_TEXT]; /* "memory=/sys/fs/cgroup/memory/glovebox" */
};

/* Finds the folders in which glovebox-spawner shall make its groups, and opens the way for it: in
 * cgroup v2 controllers are handed down, and in the private root of a container the processes that
 * live there are moved into a leaf first. None is no failure: the spawner then reports those
 * walls as degraded. */
void groups_find(struct group_places *ret_places);

/* Moves a short-lived child about, so that the kernel is ready when the first sandbox is.
 * Gives  the child, to be waited for; 0 if there is none. */
pid_t groups_wake(const struct group_places *places);
