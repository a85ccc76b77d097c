/* sd_notify.h - what systemd, or a program like it, gives a service and gets from it. */
#pragma once

#include "base/error.h"

#include <stddef.h>

/* Sockets that were opened for us: LISTEN_PID and LISTEN_FDS, sd_listen_fds(3). Each must be a
 * listening Unix socket, or TCP on a loopback address. Gives  how many there are; they are closed
 * on exec from now on. */
int manager_sockets(int *ret_sockets, size_t max, error *err);

/* Tells NOTIFY_SOCKET, if there is one: "READY=1", "RELOADING=1", "STOPPING=1", "STATUS=…". */
void manager_tell(const char *text);
