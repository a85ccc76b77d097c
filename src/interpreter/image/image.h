/* image.h - writes this interpreter down, so that another process can go on as it
 * (contract/image.h). Knows nothing of Python. */
#pragma once

#include "base/error.h"

/* What is done around a fork so that the interpreter survives it. */
struct zygote_hooks {
    void (*before)(void);
    void (*after_in_parent)(void);
    void (*after_in_child)(void);
};

enum { IMAGE_FAILED = -1, IMAGE_TAKEN, IMAGE_RESTORED };

/* Remembers which files 0, 1 and 2 are: copies of those that a program has made become copies of
 * the restored process's own. Call it before code of the user runs. */
void image_remember_streams(void);

/* Forks a process that writes the image into `fd` and exits, a child of no process here. Returns
 * thrice in all: IMAGE_TAKEN in this process, at once, which goes on as if nothing had been; and
 * IMAGE_RESTORED in every process that is restored, with init's socket at the number `control` and
 * without `fd`. The hooks are those of a fork; the last is called in what is restored.
 *
 * Call it on the main thread. Other threads are not carried, nor are processes, timers, locks on
 * files, and descriptors of anything but files.
 *
 * Gives *ret_verdict after IMAGE_TAKEN: for image_wait(). IMAGE_FAILED: no process was made. */
int image_take(int fd, int control, const struct zygote_hooks *hooks, int *ret_verdict, error *err);

/* Waits, a few milliseconds, until the image is begun, or says why it cannot be written. What goes
 * wrong after that leaves the image without its end. Takes: `verdict`. */
int image_wait(int verdict, error *err);

/* In what was restored: how many threads and descriptors of the original there are not. */
void image_lost(unsigned *ret_threads, unsigned *ret_descriptors);
