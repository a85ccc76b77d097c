/* cleanup.h - variables that are closed or freed when their scope ends. */
#pragma once

#include <stdlib.h>
#include <unistd.h>

static inline void close_fd(const int *fd)
{
    if (*fd >= 0)
        (void) close(*fd);
}

static inline void free_text(char **text)
{
    free(*text);
}

#define auto_fd   __attribute__((cleanup(close_fd))) int
#define auto_text __attribute__((cleanup(free_text))) char *

/* Returns the descriptor, which the caller then owns, and sets the variable to -1. */
static inline int take_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

/* Returns the text, which the caller then frees, and sets the variable to NULL. */
static inline char *take_text(char **text)
{
    char *taken = *text;
    *text = NULL;
    return taken;
}
