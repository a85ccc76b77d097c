/* supervise.h - keeps glovebox-spawner and gloveboxd running behind sockets that stay open. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct supervised {
    const char *state;  /* NULL: the default */
    const char *socket; /* path of the Unix socket */
    const char *listen; /* "127.0.0.1:7070", NULL for none */
    unsigned slots;
    const char *log_sync, *log_keep, *log_witness; /* as gloveboxd takes them; NULL: not given */
    bool no_keys; /* whoever reaches the TCP port may run code */
};

/* Serves until SIGTERM or SIGINT. The sockets belong to this process: when one of the two programs
 * dies, both are started again and clients wait meanwhile instead of being refused. On SIGTERM
 * gloveboxd is asked to end: it lets runs come to their end first; a second signal ends them. Fails
 * ERR_CONFLICT     another daemon serves this socket already ERR_UNAVAILABLE  the programs end at
 * once, again and again: the last reason */
int supervise(const struct supervised *service, error *err);
