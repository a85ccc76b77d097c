/* image_parts.h - what an image is made of: what the kernel knows of the process, its descriptors,
 * and its memory. */
#pragma once

#include "base/error.h"
#include "contract/image.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum {
    STATE_SIGNALS = 64,
    STATE_PATH_MAX = 4096,
    DESCRIPTORS_MAX = 1024,
    DESCRIPTOR_NAMES = 256 << 10,
};

/* What the kernel knows of this process, and a new one has to tell it again. */
struct state {
    unsigned long signals[STATE_SIGNALS][4]; /* struct sigaction, as the kernel has it */
    stack_t other_stack;
    void *robust_list;
    size_t robust_size;
    volatile pid_t *thread_id; /* where the C library has written it down */
    void **brk;                /* the C library's idea of the break */
    void *rseq;                /* NULL: not in use */
    unsigned long features;    /* of the processor that need leave: arch_prctl(2), AMX */
    struct rlimit limits[RLIM_NLIMITS];
    mode_t umask;
    char name[16];
    char folder[STATE_PATH_MAX]; /* empty: it is gone */
    unsigned threads;
};

/* In the process that goes on: what is asked of the C library, which is not possible in a child.
 * Fails ERR_UNAVAILABLE if this C library is not known. */
int state_look(struct state *state, error *err);

/* In the child that writes the image, then in what is restored. */
int state_note(struct state *state, error *err);
int state_put_back(const struct state *state, error *err);
int state_put_back_limits(const struct state *state, error *err); /* once everything is open */

enum descriptor_kind {
    DESCRIPTOR_FILE = 1, /* opened again, by its path */
    DESCRIPTOR_NAMELESS, /* a file without a name, or memory: it comes with the image */
    DESCRIPTOR_COPY,     /* made of another by dup(2): they read and write at one place */
    DESCRIPTOR_STREAM,   /* the program's stdin, stdout or stderr, whichever `stream` says */
    DESCRIPTOR_LOST,     /* pipes, sockets and so on: reads as ended, cannot be written to */
};

struct descriptor {
    int number;
    enum descriptor_kind kind;
    int flags;    /* of open(2) */
    bool closes;  /* with exec */
    int stream;   /* of DESCRIPTOR_STREAM */
    size_t name;  /* of DESCRIPTOR_FILE: where its path begins in `names` */
    off_t offset; /* of files: where it is read and written */
    mode_t mode;  /* type, and permission */
    dev_t device; /* of files, with inode: which it is */
    ino_t inode;
    unsigned of;  /* of DESCRIPTOR_COPY: its place in the table, before this */
    void *mapped; /* of DESCRIPTOR_NAMELESS, in the child and in what is restored: all of it */
    size_t size;
    int object; /* the same: its number in the image; -1: it is empty */
};

struct descriptors {
    unsigned count;
    unsigned lost;
    struct descriptor table[DESCRIPTORS_MAX];
    size_t names_size;
    char names[DESCRIPTOR_NAMES];
};

struct stream {
    dev_t device;
    ino_t inode;
};

/* Notes every descriptor but those of `apart`. */
int descriptors_note(struct descriptors *all, const struct stream *streams, const int *apart,
                     unsigned apart_count, error *err);

/* After space_look(): finds what was mapped among the objects of the image. */
struct space;
int descriptors_find(struct descriptors *all, const struct space *space, error *err);

/* Gives them their numbers again; IMAGE_FD_CONTROL becomes `control`. Takes `objects`, of the
 * image. Nothing else stays open. */
int descriptors_put_back(const struct descriptors *all, int control, const int32_t *objects,
                         error *err);

/* The memory of this process. Made in memory of its own, which is in no image. */
struct space {
    struct image_head head;
    struct image_area areas[IMAGE_AREAS_MAX];
    char names[IMAGE_NAMES_MAX];
    struct {
        uint64_t device, inode, size;
    } objects[IMAGE_OBJECTS_MAX];
    unsigned objects_count;
    uint64_t whole[IMAGE_AREAS_MAX]; /* bytes that are taken as they are; 0: its own pages */
    char maps[4 << 20];
    uint64_t pagemap[8192];
    struct image_run runs[1 << 20];
};

/* Where the process goes on, for the head: an address in it, the stack and the thread pointer. */
struct place {
    void (*resume)(uint64_t end, const int32_t *objects);
    uintptr_t stack;
    uintptr_t thread;
};

/* What it is made of; from then on only this process can change it.
 * Fails ERR_UNAVAILABLE if it holds memory that cannot be carried. */
int space_look(struct space **ret_space, const struct place *place, error *err);

/* Which bytes there are, then these: while the original goes on. */
int space_list(struct space *space, error *err);
int space_write(struct space *space, int fd, error *err);
