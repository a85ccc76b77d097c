/* disk_worker.h - what waits for the disk without being part of the log: one piece after the other,
 * in the order in which they came, on a thread of libuv (decision 0082). However many there
 * are, one at a time is under way, so that the log always has a thread of its own.
 *
 *   Threads  `work` runs off the event loop, and touches nothing but what its job lends it. All
 * else here belongs to the loop. */
#pragma once

#include <uv.h>

/* Lies in the caller's own storage until `done`. */
struct disk_job {
    void (*work)(void *user); /* off the event loop */
    void (*done)(void *user); /* on the loop again; may free it */
    void *user;
    struct disk_job *next;
};

void disk_worker_do(uv_loop_t *loop, struct disk_job *job);

/* Closes what may be the last descriptor of a file without a name: to give its pages back takes as
 * long as a part of its writing did. Behind all that is in line. -1 is none. */
void disk_worker_close(uv_loop_t *loop, int fd);
