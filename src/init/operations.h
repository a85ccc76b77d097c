/* operations.h - orders of a session that take more than one turn of init's loop: file transfers,
 * tars, watched folders, connections. Each kind is a struct of functions, in a file of its own;
 * operations.c has the table, the credit and the turns. One turn moves one block of each, so that a
 * large file delays no other operation. */
#pragma once

#include "init/init.h"

struct operation;
struct pollfd;

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1U << 0)
#endif

/* What a function of an operation returns; -1 with *err ends it too. At the end DONE is sent. */
enum { OPERATION_GOES_ON = 0, OPERATION_ENDS = 1 };

/* Functions may be NULL: frames for them are ignored. */
struct operation_kind {
    /* Sends at most `credit` bytes and subtracts them; called each turn while there is credit. */
    int (*step)(struct sandbox *sandbox, struct operation *operation, error *err);
    /* Bytes from gloveboxd, and their end. */
    int (*data)(struct sandbox *sandbox, struct operation *operation, const void *bytes,
                size_t size, error *err);
    int (*end)(struct sandbox *sandbox, struct operation *operation, error *err);
    /* The poll(2) events to wait for on `fd`, and what to do when they come. */
    short (*wants)(const struct operation *operation);
    int (*ready)(struct sandbox *sandbox, struct operation *operation, short events, error *err);
    /* Frees everything but `fd`, which may be -1. */
    void (*close)(struct operation *operation);
};

struct operation {
    uint32_t id; /* 0: this entry is free */
    const struct operation_kind *kind;
    int fd;
    uint64_t credit; /* bytes that may be sent to gloveboxd now */
    uint64_t left;   /* bytes of a file */
    void *room;      /* data of this kind */
};

/* Takes an entry. The caller then sets its fields.
 * Fails  ERR_SYSTEM    EAGAIN: AGENT_OPERATIONS_MAX are under way
 *        ERR_PROTOCOL  `id` is 0 or in use */
int operation_begin(uint32_t id, const struct operation_kind *kind,
                    struct operation **ret_operation, error *err);

/* Sends a frame of the operation, and subtracts its bytes from the credit. */
void operation_send(const struct sandbox *sandbox, struct operation *operation,
                    enum agent_kind kind, const void *bytes, size_t size);

/* DATA, END, CREDIT and CANCEL for an operation. False: no operation has this id. */
bool operation_on_frame(struct sandbox *sandbox, const struct frame *in);

/* For the loop: fills at most AGENT_OPERATIONS_MAX rows, and handles their events. */
unsigned operations_gather(struct pollfd *watched);
bool operations_are_busy(void); /* an operation can go on without waiting */
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

/* paths.c: paths that a session gives; the rules are in agent.h. */

/* Opens what the path leads to. Fails with ENOENT, EACCES (also for /proc), EINVAL for an invalid
 * path, … in err->os. */
int open_path(const struct sandbox *sandbox, const char *path, int flags, error *err);

/* Opens (O_PATH) the folder of the path's last name, and gives that name. `make` makes missing
 * folders. */
int open_place(const struct sandbox *sandbox, const char *path, bool make, const char **ret_name,
               error *err);

/* Mode of a link's target; 0: none, or one in /proc, where init would see its own files. */
uint32_t mode_of_target(int folder, const char *name);

/* entries.c: one row of a listing. */
void send_entry(const struct sandbox *sandbox, uint32_t id, int folder, const char *name,
                const char *path, uint32_t depth);
/* Removes all that is in it, at any depth. */
int empty_folder(int folder, error *err);
int stat_path(struct sandbox *sandbox, const struct frame *in, error *err);
