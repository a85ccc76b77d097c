/* socket_watcher.h - waits on the event loop for sockets of a library. One that the kernel cannot
 * watch now is tried again every 50 ms until the library drops it: if libcurl were told of the
 * failure, it would end all its transfers. */
#pragma once

#include <stdbool.h>
#include <uv.h>

typedef void watched_ready(void *context, int socket, bool reads, bool writes);

struct watched_sockets {
    uv_loop_t *loop;
    watched_ready *ready;
    void *context;
    struct watched *first;
};

/* Watches a socket for reading, writing or both; with neither, the watch has ended on return.
 * Returns -1 if there is no memory. */
int watched_change(struct watched_sockets *sockets, int socket, bool reads, bool writes);
