/* image_parts.h - the parts of an image: kernel state, descriptors, memory. */
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

/* State of this process in the kernel, which a restored one has to set again. */
struct state {
    unsigned long signals[STATE_SIGNALS][4]; /* struct sigaction, as the kernel has it */
    stack_t other_stack;
    void *robust_list;
    size_t robust_size;
    volatile pid_t *thread_id; /* where the C library stores it */
    void **brk;                /* where the C library stores the break, brk(2) */
    void *rseq;                /* NULL: not in use */
    unsigned long features;    /* of the processor that need permission: arch_prctl(2), AMX */
    struct rlimit limits[RLIM_NLIMITS];
    mode_t umask;
    char name[16];
    char folder[STATE_PATH_MAX]; /* empty: it was deleted */
    unsigned threads;
};

/* Called in the original: reads what the C library cannot be asked for in a forked child. Fails
 * ERR_UNAVAILABLE if this C library is not known. */
int state_look(struct state *state, error *err);

/* Called in the child that writes the image, then in the restored process. */
int state_note(struct state *state, error *err);
int state_put_back(const struct state *state, error *err);
int state_put_back_limits(const struct state *state, error *err); /* once everything is open */

enum descriptor_kind {
    DESCRIPTOR_FILE = 1, /* opened again, by its path */
    DESCRIPTOR_NAMELESS, /* a file without a name, or memory: the image holds it */
    DESCRIPTOR_COPY,     /* made of another by dup(2): they share one offset */
    DESCRIPTOR_STREAM,   /* the program's stdin, stdout or stderr, whichever `stream` says */
    DESCRIPTOR_LOST,     /* pipes, sockets and so on: reads as ended, cannot be written to */
};

struct descriptor {
    int number;
    enum descriptor_kind kind;
    int flags;    /* of open(2) */
    bool closes;  /* FD_CLOEXEC */
    int stream;   /* of DESCRIPTOR_STREAM */
    size_t name;  /* of DESCRIPTOR_FILE: where its path begins in `names` */
    off_t offset; /* of files */
    mode_t mode;  /* type, and permission */
    dev_t device; /* of files: identifies it, with `inode` */
    ino_t inode;
    unsigned of;  /* of DESCRIPTOR_COPY: index of the original in the table, before this */
    void *mapped; /* of DESCRIPTOR_NAMELESS: mapping of all of it, in child and restored process */
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

/* Saves every descriptor except those of `apart`. */
int descriptors_note(struct descriptors *all, const struct stream *streams, const int *apart,
                     unsigned apart_count, error *err);

/* After space_look(): finds what was mapped among the objects of the image. */
struct space;
int descriptors_find(struct descriptors *all, const struct space *space, error *err);

/* Opens them again at their numbers; IMAGE_FD_CONTROL becomes `control`. Takes `objects`, the
 * image's shared memory. Closes everything else. */
int descriptors_put_back(const struct descriptors *all, int control, const int32_t *objects,
                         error *err);

/* The memory of this process. In a mapping of its own, which images leave out. */
struct space {
    struct image_head head;
    struct image_area areas[IMAGE_AREAS_MAX];
    char names[IMAGE_NAMES_MAX];
    struct {
        uint64_t device, inode, size;
    } objects[IMAGE_OBJECTS_MAX];
    unsigned objects_count;
    uint64_t whole[IMAGE_AREAS_MAX]; /* bytes to copy of an area; 0: the pages that are its own */
    char maps[4 << 20];
    uint64_t pagemap[8192];
    struct image_run runs[1 << 20];
};

/* Where the restored process goes on, for the image's head. */
struct place {
    void (*resume)(uint64_t end, const int32_t *objects);
    uintptr_t stack;
    uintptr_t thread;
};

/* Finds the areas, and copies those that other processes could change meanwhile.
 * Fails ERR_UNAVAILABLE if there is memory that an image cannot hold. */
int space_look(struct space **ret_space, const struct place *place, error *err);

/* Lists the pages to copy, then writes the image, while the original goes on. */
int space_list(struct space *space, error *err);
int space_write(struct space *space, int fd, error *err);
