/* confine.h - the system call filter of programs that connect outwards. */
#pragma once

#include "base/error.h"

/* From here on this process can use and make sockets, but cannot open files or start programs.
 * Fails  ERR_UNAVAILABLE. */
int confine_outside(error *err);
