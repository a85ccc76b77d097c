/* guard.h - keeps web pages away from a daemon on this machine. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* A browser may send requests here for any page that it shows, under any name that the page's owner
 * lets point here (DNS rebinding). So over TCP the Host must be this machine, and whoever names an
 * Origin must come from this machine too. Fails  ERR_FORBIDDEN  with what to do. */
int guard_origin(const char *host, const char *origin, bool is_remote, error *err);
