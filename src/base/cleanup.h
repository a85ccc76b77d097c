/* cleanup.h - a variable that closes or frees itself when its scope ends. */
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

/* Hands the descriptor on: the caller owns what is returned, the variable forgets it. */
static inline int take_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

/* Hands the text on: the caller frees what is returned. */
static inline char *take_text(char **text)
{
    char *taken = *text;
    *text = NULL;
    return taken;
}
