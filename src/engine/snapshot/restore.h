/* restore.h - gives a fresh sandbox the files and the interpreter of a copy (capture.h), out of two
 * pipes. Files first: an interpreter opens again what it had open.
 *
 *  files --> interpreter --> over
 *
 * What comes through the pipes is the copied program's word: only init and glovebox-restore, inside
 * the sandbox that it is for, look at it. */
#pragma once

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "engine/sandbox/sandbox.h"

/* The number of the interpreter, whatever came with the sandbox itself. */
enum {
    FILL_INTERPRETER = 16,
    FILL_MS = 20000,     /* for the interpreter, from its beginning */
    FILL_MAX_MS = 60000, /* for all, with what is waited for */
};

struct restore {
    struct sandbox *sandbox;
    int image;     /* -1 once it was given away */
    deadline ends; /* the copy may wait for its turn before it is sent: it has a deadline itself */
    struct bytes said; /* by glovebox-restore */
    uint64_t memory;   /* the limit of that sandbox, for words */
    uint32_t pid;
    uint32_t threads, descriptors; /* that the image could not carry, as its program says */
    bool has_lost;                 /* they were said */
    bool is_secret;                /* output of the program is not reported */
    bool is_over, is_lost;
    /* Called once, unless restore_done() came first. *why NULL: the interpreter waits for a cell,
     * and the sandbox may get another user. Until it has one it may still be lost: then `told` is
     * called once more. */
    void (*told)(void *user, const error *why);
    void *user;
};

/* Takes both read ends; borrows the sandbox, which has not been used. `told`, `user`
 * and `memory` have been set, the rest is zero. */
void restore_begin(struct restore *fill, struct sandbox *sandbox, int image, int files);

/* To be called regularly: reports a restore that has exceeded its time. */
void restore_look(struct restore *fill);

/* No callback follows. Does nothing if no restore was begun. */
void restore_done(struct restore *fill);
