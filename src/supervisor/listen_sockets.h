/* listen_sockets.h - the sockets that gloveboxd takes connections from. */
#pragma once

#include "supervisor/launch.h"
#include "supervisor/supervisor.h"

#include <sys/socket.h>

/* "127.0.0.1:7070" or "[::1]:7070". Fails  ERR_BAD_REQUEST; ERR_POLICY: it is not loopback. */
int listen_address_read(const char *text, struct sockaddr_storage *ret_address, socklen_t *ret_size,
                        error *err);

/* Opens the sockets, or takes those of a service manager.
 * Gives  *ret_path  the file to remove at the end; NULL: none. */
int listen_sockets_open(const struct supervised *service, struct launch_plan *plan, char **ret_path,
                        error *err);
