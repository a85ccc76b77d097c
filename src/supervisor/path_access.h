/* path_access.h - can another user come to a folder of ours? */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

bool daemon_cannot_read(const char *path); /* gloveboxd is another user where root starts it */

/* Asks the kernel, in a child that has taken the user's id: modes and access lists count alike.
 * Root may ask; a user who may not take the id, and a folder that is not there, is not refused
 * here.
 *
 *   Fails  ERR_UNAVAILABLE  a folder above keeps the user out; the text names it and what to do */
int check_reach(const char *folder, uid_t id, error *err);
