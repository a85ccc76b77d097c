/* socket_watcher.h - waits on the loop for sockets of a library. One that the kernel cannot watch
 * now is tried again every 50 ms until the library gives it up: libcurl ends all its transfers when
 * it hears of a failure. */
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

/* The library wants to hear of this socket, or with neither not any more: it may close it then.
 * Returns -1 if there is no memory. */
int watched_change(struct watched_sockets *sockets, int socket, bool reads, bool writes);
