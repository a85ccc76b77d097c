/* spool.h - copies bytes between a pipe and a file without a name, piece by piece, off the event
 * loop (disk_worker.h): neither a gigabyte nor a slow disk holds up the loop.
 *
 * Since  what is written here is not synced: it is lost with the daemon. */
#pragma once

#include "base/error.h"

#include <stdint.h>
#include <uv.h>

struct spool;

struct spool_order {
    uv_loop_t *loop;
    int pipe;     /* taken, also on failure */
    int file;     /* borrowed for the call; several spools may use it */
    uint64_t max; /* bytes; into a pipe: the size of the file */
    /* From a pipe: called on the loop before so many bytes are written. Its error is passed to
     * `told`. NULL: not called. */
    int (*grows)(void *user, uint64_t bytes, error *err);
    /* Called once: all bytes are there; `moved` is how many. */
    void (*told)(void *user, uint64_t moved, const error *why);
    void *user;
};

/* From the pipe into the file, up to its end. Fails  ERR_SYSTEM; later ERR_LIMIT, ERR_FULL. */
int spool_out(const struct spool_order *order, struct spool **ret_pump, error *err);
/* The first `max` bytes of the file into the pipe. */
int spool_in(const struct spool_order *order, struct spool **ret_pump, error *err);

/* No callback follows. NULL is accepted. */
void spool_abandon(struct spool *spool);
