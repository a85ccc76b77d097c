/* confine.h - gloveboxd's own seccomp filter. */
#pragma once

#include "base/error.h"

/* Afterwards this process can read and write open descriptors, accept connections and keep blobs;
 * it cannot execute, fork, trace, mount, change its identity or open a network connection. Fails
 * ERR_UNAVAILABLE. */
int confine_daemon(error *err);
