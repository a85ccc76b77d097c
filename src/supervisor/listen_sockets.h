/* listen_sockets.h - the sockets that gloveboxd takes connections from. */
#pragma once

#include "supervisor/launch.h"
#include "supervisor/supervisor.h"

/* Ours, unless a service manager has opened some for us.
 * Gives  *ret_path  the file to remove in the end; NULL: none. */
int listen_sockets_open(const struct supervised *service, struct launch_plan *plan, char **ret_path,
                        error *err);
