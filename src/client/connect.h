/* connect.h - where a daemon listens: the path of a Unix socket, or "HOST:PORT" of this machine. */
#pragma once

#include "base/error.h"

enum { API_KEY_TEXT_MAX = 128 };

/* Gives  *ret_fd, connected.
 * Fails  ERR_BAD_REQUEST  an address of another machine: what is sent there in plain can be read
 *        ERR_UNAVAILABLE  no program listens there; the text says what to do */
int dial(const char *place, int *ret_fd, error *err);

/* The key that calls are made with: `key`, or GLOVEBOX_API_KEY if it is NULL. Gives *ret_key, NULL
 * if there is none, borrowed. Fails  ERR_BAD_REQUEST  for what can be no key. */
int key_of_caller(const char *key, const char **ret_key, error *err);
