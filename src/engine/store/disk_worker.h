/* disk_worker.h - runs jobs that wait for the disk and are not part of the log, one after another
 * in their order, on a thread of libuv (decision 0082). Only one at a time is under way, so that
 * the log always has a thread.
 *
 * Threads  `work` runs off the event loop and uses only what its job lends it. All else here
 * belongs to the loop. */
#pragma once

#include <uv.h>

/* In the caller's own storage until `done`. */
struct disk_job {
    void (*work)(void *user); /* off the event loop */
    void (*done)(void *user); /* on the loop again; may free it */
    void *user;
    struct disk_job *next;
};

void disk_worker_do(uv_loop_t *loop, struct disk_job *job);

/* Closes a descriptor after the jobs that are queued: if it is the last one of a file without a
 * name, the kernel frees its pages, which takes time. -1: none. */
void disk_worker_close(uv_loop_t *loop, int fd);
