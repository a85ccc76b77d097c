/* confine.h - the wall of the programs that reach outside. */
#pragma once

#include "base/error.h"

/* From here on this process uses the sockets that it has and makes others; it opens no file and
 * starts nothing. Fails  ERR_UNAVAILABLE. */
int confine_outside(error *err);
