/* liveness.h - tells the parent that gloveboxd is "alive".
 *
 * Every five seconds the loop gives a disk thread a job that writes to the disk of the state folder
 * and waits for it; the loop sends the message when the job has ended. So the message shows that
 * the loop, the threads and the disk respond; a disk that fails or is full is reported elsewhere. A
 * parent that receives no message for half a minute ends gloveboxd and starts it again. */
#pragma once

#include <uv.h>

enum { LIVENESS_EVERY_MS = 5000 };

/* `socket` belongs to the caller and must remain open until liveness_close(). */
void liveness_open(uv_loop_t *loop, const char *state, int socket);
void liveness_close(void);
