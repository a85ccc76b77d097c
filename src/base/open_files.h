/* open_files.h - how many descriptors this process may have, and how many for which use. */
#pragma once

#include <stdbool.h>

/* Raises the soft limit to the hard limit, RLIMIT_NOFILE of setrlimit(2). Returns the new limit. */
unsigned long open_files_raise(void);

enum { OPEN_FILES_CONNECTIONS_MAX = 2048 };

/* How many of `max` descriptors clients may use: half of those that the process does not need. */
unsigned open_files_for_connections(unsigned long max);

/* May a sandbox keep the descriptor `fd`? Not if few are left, so that connections and files, first
 * of all those of the log, can still be opened. The kernel gives out the lowest free number, so a
 * high one means that few are left. */
bool open_files_leave_room(unsigned long max, int fd);
