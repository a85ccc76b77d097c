/* path_access.h - can another user reach a folder? */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

bool daemon_cannot_read(const char *path); /* started by root, gloveboxd is another user */

/* Asks the kernel, in a child with that user id, so that access lists count as well as modes. Does
 * not fail if this process may not take the id, or if the folder does not exist.
 *
 *   Fails  ERR_UNAVAILABLE  a folder above keeps the user out; the text names it and what to do */
int check_reach(const char *folder, uid_t id, error *err);
