/* capture.h - what a context and the files of its session are at one moment, as two streams: the
 * image of its interpreter (contract/image.h) and a tar of all that can be written there. They flow
 * from the sandbox into two pipes, past gloveboxd.
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
    struct capture_pipes pipes; /* write ends, which are taken, also when it fails */
    /* Told once, unless it was abandoned. *why NULL: the context runs on; the rest of the image is
     * on its way. Else no more comes. */
    void (*told)(void *user, const error *why);
    void *user;
};

enum { COPY_MS = 10000 };

/* Waits for its turn behind other copies, and for no cell.
 * Fails  ERR_CONFLICT     a cell runs or waits there, or it begins or ends
 *        ERR_BAD_REQUEST  its language has no images */
int capture_check(const struct context *context, error *err);
int capture_begin(const struct capture_order *order, struct capture **ret_copy, error *err);

/* Valid during the callback: how many files of the session are not in it (FIFOs, sockets, what lies
 * too deep or could not be read). */
unsigned capture_left_out(const struct capture *copy);

/* Its result is not needed any more. */
void capture_abandon(struct capture *copy);
