/* liveness.h - says "alive" to the parent as long as gloveboxd does its work.
 *
 * Every five seconds a turn of the loop gives a disk thread a piece of work, which writes to
 * the disk of the state and waits for it, and another turn notes its end. The message says that
 * all of this moves; a disk that fails or is full is reported elsewhere. A parent that receives
 * nothing for half a minute ends gloveboxd and starts it again. */
#pragma once

#include "base/error.h"

#include <uv.h>

enum { LIVENESS_EVERY_MS = 5000 };

/* `socket` stays the caller's, until liveness_close(). */
void liveness_open(uv_loop_t *loop, const char *state, int socket);
void liveness_close(void);
