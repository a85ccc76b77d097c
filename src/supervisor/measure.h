/* measure.h - a service that begins has its templates measured, by a process beside it: `glovebox
 * template verify --record`. What that finds is an event of the log, and a line if a template is
 * not what was built. */
#pragma once

#include <sys/types.h>

struct measuring {
    pid_t pid; /* 0: none runs */
    int pidfd; /* -1 */
};

/* A process that cannot be started is said, and that is all. */
void measuring_begin(struct measuring *measuring, const char *state);

/* It has ended, or has to. */
void measuring_end(struct measuring *measuring);
