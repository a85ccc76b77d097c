/* open_files.h - how many descriptors this process may have, and which parts may take them. */
#pragma once

#include <stdbool.h>

/* Raises the limit to the one that may not be passed, RLIMIT_NOFILE of setrlimit(2).
 * Returns  how many there may be now. */
unsigned long open_files_raise(void);

enum { OPEN_FILES_CONNECTIONS_MAX = 2048 };

/* Of `max` descriptors, how many connections of clients may take: half of what the process does not
 * need itself. */
unsigned open_files_for_connections(unsigned long max);

/* Whether a sandbox may keep the descriptor `fd`, so that connections and files which are opened
 * for a moment, those of the log first of all, find others: the kernel hands out the lowest free
 * number, so one this close to the limit means that hardly any other is left. */
bool open_files_leave_room(unsigned long max, int fd);
