/* restore.h - puts the files and the interpreter of a copy (capture.h) into a fresh sandbox, from
 * two pipes. Files come first, since the interpreter opens them again.
 *
 * files --> interpreter --> over
 *
 * The copied program may have chosen any byte of the pipes: only init and glovebox-restore read
 * them, inside the new sandbox. */
#pragma once

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "engine/sandbox/sandbox.h"

/* The number of the restored interpreter, also if the sandbox came with another one. */
enum {
    FILL_INTERPRETER = 16,
    FILL_MS = 20000,     /* for the interpreter */
    FILL_MAX_MS = 60000, /* for all, waiting included */
};

struct restore {
    struct sandbox *sandbox;
    int image;         /* -1 after it was sent to init */
    deadline ends;     /* the copy has its own deadline, and may wait before it is sent */
    struct bytes said; /* output of glovebox-restore */
    uint64_t memory;   /* the limit of that sandbox, for messages */
    uint32_t pid;
    uint32_t threads, descriptors; /* that the image does not have, as glovebox-restore says */
    bool has_lost;                 /* it has said so */
    bool is_secret;                /* its output is not reported */
    bool is_over, is_lost;
    /* Called once, unless restore_done() came first. *why NULL: the interpreter waits for a cell,
     * and the sandbox may get another user. It may be lost before it has one: then `told` is called
     * again. */
    void (*told)(void *user, const error *why);
    void *user;
};

/* Takes both read ends; borrows the sandbox, which must be unused. `told`, `user` and `memory` have
 * been set, the rest is zero. */
void restore_begin(struct restore *fill, struct sandbox *sandbox, int image, int files);

/* To be called regularly: ends a restore that has exceeded its time. */
void restore_look(struct restore *fill);

/* No callback follows. Does nothing if no restore was begun. */
void restore_done(struct restore *fill);
