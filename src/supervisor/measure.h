/* measure.h - when a service starts, a separate process checks its templates: `glovebox template
 * verify --record`. The result is an event of the log, and a message if a template has changed. */
#pragma once

#include <sys/types.h>

struct measuring {
    pid_t pid; /* 0: none runs */
    int pidfd; /* -1 */
};

/* If the process cannot be started, this only prints a message. */
void measuring_begin(struct measuring *measuring, const char *state);

/* Reaps the process; kills it if it has not ended. */
void measuring_end(struct measuring *measuring);
