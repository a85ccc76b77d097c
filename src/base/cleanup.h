/* cleanup.h - variables that are closed or freed when their scope ends. */
#pragma once

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void close_fd(const int *fd)
{
    if (*fd >= 0)
        (void) close(*fd);
}

/* `variable` is the address of a pointer of any type. */
static inline void free_memory(void *variable)
{
    void *memory;
    memcpy(&memory, variable, sizeof memory);
    free(memory);
}

#define auto_fd   __attribute__((cleanup(close_fd))) int
#define auto_free __attribute__((cleanup(free_memory)))
#define auto_text auto_free char *

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
