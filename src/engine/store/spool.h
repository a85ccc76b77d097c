/* spool.h - carries bytes between a pipe and a file without a name, a piece in each turn, off
 * the event loop (disk_worker.h): a gigabyte does not hold up the loop, nor does a disk that is
 * slow. It knows nothing of what they mean.
 *
 *   Since  what is written here is not waited for on the disk: it is gone with the daemon. */
#pragma once

#include "base/error.h"

#include <stdint.h>
#include <uv.h>

struct spool;

struct spool_order {
    uv_loop_t *loop;
    int pipe;     /* taken, also when it fails */
    int file;     /* borrowed for the call; of several pumps at once */
    uint64_t max; /* bytes; into a pipe: all that the file has */
    /* Out of a pipe: asked, on the loop, before so many more bytes are written. Its error
     * goes to `told`. NULL: not asked. */
    int (*grows)(void *user, uint64_t bytes, error *err);
    /* Called once: all bytes are there, and `moved` is how many. */
    void (*told)(void *user, uint64_t moved, const error *why);
    void *user;
};

/* From the pipe into the file, up to its end. Fails  ERR_SYSTEM; later ERR_LIMIT, ERR_FULL. */
int spool_out(const struct spool_order *order, struct spool **ret_pump, error *err);
/* The first `most` bytes of the file into the pipe. */
int spool_in(const struct spool_order *order, struct spool **ret_pump, error *err);

/* No callback follows. NULL is none. */
void spool_abandon(struct spool *spool);
