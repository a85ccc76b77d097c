/* confine.h - gloveboxd's own wall. */
#pragma once

#include "base/error.h"

/* From here on this process can read and write what it has open, serve sockets and keep blobs; it
 * can neither execute, fork, trace, mount, change its identity nor open a network connection. Fails
 * ERR_UNAVAILABLE. */
int confine_daemon(error *err);
