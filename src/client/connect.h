/* connect.h - connects to a daemon: by the path of a Unix socket, or "HOST:PORT" of this machine.
 */
#pragma once

#include "base/error.h"

enum { API_KEY_TEXT_MAX = 128 };

/* Gives  *ret_fd, connected.
 * Fails  ERR_BAD_REQUEST  an address of another machine, to which nothing is encrypted
 *        ERR_UNAVAILABLE  no program listens there; the text says what to do */
int dial(const char *place, int *ret_fd, error *err);

/* The key of calls: `key`, or GLOVEBOX_API_KEY if that is NULL. Gives *ret_key, borrowed; NULL if
 * there is none. Fails  ERR_BAD_REQUEST  if it cannot be a key. */
int key_of_caller(const char *key, const char **ret_key, error *err);
