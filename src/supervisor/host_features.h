/* host_features.h - what this machine grants the user who starts glovebox. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* True for a root who has what the spawner needs. Root in a container may lack it: the
 * capabilities, or ids that could be mapped. */
bool host_grants_privileges(void);

/* Gives the path of the file in which instances on this host lock their slots, for the caller to
 * free. User ids and control groups follow from slots, so all instances of one user must agree on
 * it: no variable moves it. Its folder is made. */
int host_slots_file(char **ret_path, error *err);

/* The disk that carries a folder: rates of reading and writing are set for a whole disk, never for
 * a partition (cgroup-v2.rst, io.max). False if it is no disk. */
bool host_disk_of(const char *folder, unsigned *ret_major, unsigned *ret_minor);
