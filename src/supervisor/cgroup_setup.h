/* cgroup_setup.h - where control groups can be made on this machine: v2, v1, or both. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

enum { GROUP_PLACES_MAX = 8, GROUP_PLACE_TEXT = 320 };

struct group_places {
    size_t count;
    char argument[GROUP_PLACES_MAX][GROUP_PLACE_TEXT]; /* "memory=/sys/fs/cgroup/memory/glovebox" */
};

/* Finds the folders in which glovebox-spawner makes its groups, and prepares them: with cgroup v2
 * it enables controllers for them, and moves processes in the root of a container into a leaf
 * first. If there is none, the spawner reports these walls as degraded. */
void groups_find(struct group_places *ret_places);

/* Has a child change its control group, so that the first sandbox does not wait for the kernel's
 * grace period. Gives  the child, which the caller reaps; 0 if there is none. */
pid_t groups_wake(const struct group_places *places);
