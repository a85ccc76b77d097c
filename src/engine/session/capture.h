/* capture.h - copies a context and the files of its session at one moment, as two streams: the
 * image of the interpreter (contract/image.h) and a tar of all writable files. They go from the
 * sandbox into two pipes, not through gloveboxd.
 *
 *  waiting --> under way --> over       While it is under way the context is busy: cells wait until
 *                                       its child has been forked and the files are read.
 *
 * See  docs/decisions/0070-branches-from-memory-images.md */
#pragma once

#include "base/error.h"

struct context;
struct capture;

struct capture_pipes {
    int image, files;
};

struct capture_order {
    struct context *context;
    struct capture_pipes pipes; /* write ends, which are taken, also on failure */
    /* Called once, unless it was abandoned. *why NULL: the context continues, and the rest of the
     * image follows. Else the copy failed. */
    void (*told)(void *user, const error *why);
    void *user;
};

enum { COPY_MS = 10000 };

/* Waits for other copies, not for cells. Fails  ERR_CONFLICT  a cell runs or waits there, or the
 * context begins or ends; ERR_BAD_REQUEST  its language has no images */
int capture_check(const struct context *context, error *err);
int capture_begin(const struct capture_order *order, struct capture **ret_copy, error *err);

/* Valid during the callback: how many files of the session are not copied (FIFOs, sockets, files
 * that lie too deep or could not be read). */
unsigned capture_left_out(const struct capture *copy);

/* The result is not needed any more. */
void capture_abandon(struct capture *copy);
