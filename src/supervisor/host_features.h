/* host_features.h - what this machine grants the user who starts glovebox. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* True for root with the privileges that the spawner needs. Root in a container may lack
 * capabilities, or ids to map. */
bool host_grants_privileges(void);

/* Gives the path of the file in which instances on this host lock their slots, for the caller to
 * free. User ids and control groups follow from slots, so all instances of one user must use the
 * same file: no variable changes it. Its folder is made. */
int host_slots_file(char **ret_path, error *err);

/* The disk of a folder: rates of reading and writing are set for a whole disk, not for a partition
 * (cgroup-v2.rst, io.max). False if the folder is not on a disk. */
bool host_disk_of(const char *folder, unsigned *ret_major, unsigned *ret_minor);
