/* image.h - takes an image of this interpreter, from which it can be restored (contract/image.h).
 * Knows nothing of Python. */
#pragma once

#include "base/error.h"

#include <sys/types.h>

/* Python's functions to call before and after a fork. */
struct zygote_hooks {
    void (*before)(void);
    void (*after_in_parent)(void);
    void (*after_in_child)(void);
    pid_t (*fork)(void); /* for zygotes: fork(), or _Fork(), which calls no handler */
};

enum { IMAGE_FAILED = -1, IMAGE_TAKEN, IMAGE_RESTORED };

/* Remembers which files 0, 1 and 2 are: copies of them that a program makes become copies of the
 * restored process's streams. Call it before code of the user runs. */
void image_remember_streams(void);

/* Forks a process, not a child of this one, that writes the image into `fd` and exits. Returns
 * IMAGE_TAKEN in this process, at once; and IMAGE_RESTORED in every process that is restored from
 * the image, with init's socket at the number `control` and without `fd`. `after_in_child` is
 * called in the restored process.
 *
 * Call it on the main thread. An image does not hold other threads, processes, timers, locks on
 * files, and descriptors of anything but files.
 *
 * Gives *ret_verdict after IMAGE_TAKEN: for image_wait(). IMAGE_FAILED: no process was made. */
int image_take(int fd, int control, const struct zygote_hooks *hooks, int *ret_verdict, error *err);

/* Waits, a few milliseconds, until the image is begun, or says why it cannot be written. After a
 * later failure the image is incomplete. Takes: `verdict`. */
int image_wait(int verdict, error *err);

/* In a restored process: how many threads and descriptors of the original are missing. */
void image_lost(unsigned *ret_threads, unsigned *ret_descriptors);
