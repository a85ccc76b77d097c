/* operations.h - what a session asks of init that takes more than one turn of its loop: files that
 * stream, tars, watched folders, connections. Each kind is a row of functions in a file of its own;
 * operations.c keeps the places, the credit and the turns. One turn moves one block of each, so
 * that a large file holds up no other operation. */
#pragma once

#include "init/init.h"

struct operation;
struct pollfd;

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1U << 0)
#endif

/* How an operation goes on; -1 with *err ends it too. Either way DONE is sent, and it is closed. */
enum { OPERATION_GOES_ON = 0, OPERATION_ENDS = 1 };

/* A function that is missing: frames for it mean nothing to this kind. */
struct operation_kind {
    /* Sends at most `credit` bytes and counts them off; called each turn while there is some. */
    int (*step)(struct sandbox *sandbox, struct operation *operation, error *err);
    /* Bytes from gloveboxd, and their end. */
    int (*data)(struct sandbox *sandbox, struct operation *operation, const void *bytes,
                size_t size, error *err);
    int (*end)(struct sandbox *sandbox, struct operation *operation, error *err);
    /* What the loop looks for on `fd`, and that it came. */
    short (*wants)(const struct operation *operation);
    int (*ready)(struct sandbox *sandbox, struct operation *operation, short events, error *err);
    /* Gives back everything but `fd`, which may be -1. */
    void (*close)(struct operation *operation);
};

struct operation {
    uint32_t id; /* 0: the place is free */
    const struct operation_kind *kind;
    int fd;
    uint64_t credit; /* bytes that gloveboxd takes now */
    uint64_t left;   /* of a file */
    void *room;      /* the kind's own */
};

/* Takes a place. The caller sets what it needs after it.
 * Fails  ERR_SYSTEM    EAGAIN: AGENT_OPERATIONS_MAX are under way
 *        ERR_PROTOCOL  0 is no number, and one number is one operation's. */
int operation_begin(uint32_t id, const struct operation_kind *kind,
                    struct operation **ret_operation, error *err);

/* Sends a frame of the operation's, and counts its bytes off the credit. */
void operation_send(const struct sandbox *sandbox, struct operation *operation,
                    enum agent_kind kind, const void *bytes, size_t size);

/* DATA, END, CREDIT and CANCEL for an operation. False: the id is none's. */
bool operation_on_frame(struct sandbox *sandbox, const struct frame *in);

/* The loop's side: fills at most AGENT_OPERATIONS_MAX rows, and takes them back. */
unsigned operations_gather(struct pollfd *watched);
bool operations_are_busy(void); /* a step can be taken now, without waiting for anything */
void operations_turn(struct sandbox *sandbox, const struct pollfd *watched);

/* Orders that begin an operation: their own DONE is sent when it ends. */
int begin_read(struct sandbox *sandbox, const struct frame *in, error *err);
int begin_write(struct sandbox *sandbox, const struct frame *in, error *err);
int begin_pack(struct sandbox *sandbox, const struct frame *in, error *err);
int begin_unpack(struct sandbox *sandbox, const struct frame *in, error *err);
int begin_save(struct sandbox *sandbox, const struct frame *in, error *err);
int begin_load(struct sandbox *sandbox, const struct frame *in, error *err);
int begin_watch(struct sandbox *sandbox, const struct frame *in, error *err);
int begin_connect(struct sandbox *sandbox, const struct frame *in, error *err);

/* paths.c: paths as a session gives them; see agent.h for the rule. */

/* Opens what the path leads to. Fails with ENOENT, EACCES (also for /proc), EINVAL for a path that
 * is none, … in err->os. */
int open_path(const struct sandbox *sandbox, const char *path, int flags, error *err);

/* Opens the folder in which the path's last name stands, O_PATH, and gives that name; the folders
 * are made if `make`. */
int open_place(const struct sandbox *sandbox, const char *path, bool make, const char **ret_name,
               error *err);

/* What a link leads to; 0 if that is nothing, or of a process: init's own is not told. */
uint32_t mode_of_target(int folder, const char *name);

/* entries.c: one row of a listing. */
void send_entry(const struct sandbox *sandbox, uint32_t id, int folder, const char *name,
                const char *path, uint32_t depth);
/* Removes all that is in it, however deep. */
int empty_folder(int folder, error *err);
int stat_path(struct sandbox *sandbox, const struct frame *in, error *err);
