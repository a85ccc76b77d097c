/* sd_notify.h - sockets from systemd or a similar service manager, and messages to it. */
#pragma once

#include "base/error.h"

#include <stddef.h>

/* Takes sockets that the manager has opened: LISTEN_PID and LISTEN_FDS, sd_listen_fds(3). Each must
 * be a listening Unix socket, or TCP on a loopback address. Sets FD_CLOEXEC. Returns  how many. */
int manager_sockets(int *ret_sockets, size_t max, error *err);

/* Writes to NOTIFY_SOCKET, if set: "READY=1", "RELOADING=1", "STOPPING=1", "STATUS=…". */
void manager_tell(const char *text);
