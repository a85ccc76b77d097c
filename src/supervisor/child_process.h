/* child_process.h - a program that is to be started: its arguments, the descriptors it gets, who it
 * becomes.
 *
 * It is put together before fork(), so that the newborn only makes system calls: other threads may
 * have held any lock. It starts with an empty environment and no descriptor but those that it was
 * given. */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <sys/types.h>

enum { PROGRAM_FIRST_FD = 3, PROGRAM_FDS_MAX = 40 };

/* One program to start: its arguments, and the descriptors it gets as 3, 4, 5 … */
struct program {
    char *path;
    size_t argument_count;
    char **arguments; /* owned, NULL after the last */
    size_t fd_count;
    int fds[PROGRAM_FDS_MAX]; /* borrowed */
    size_t opened_count;
    int opened[PROGRAM_FDS_MAX]; /* those of them that are ours to close */
    uid_t becomes;               /* user and group, 0: stays who we are */
    int death_signal;
    int log;
};

void program_done(struct program *program);

#define auto_program __attribute__((cleanup(program_done))) struct program

/* Each adds to the command line. Fails  ERR_INTERNAL  no memory, or too many descriptors. */
int program_add(struct program *program, error *err, const char *format, ...) PRINTF(3, 4);
int program_add_pair(struct program *program, const char *flag, const char *value, error *err);

/* Hands a descriptor over, which stays the caller's, and names it after `flag`. */
int program_add_fd(struct program *program, const char *flag, int fd, error *err);

/* Hands a descriptor over for good: it is closed with `program`, and also when this fails.
 * Returns  its number in the program. */
int program_give(struct program *program, int fd, error *err);

/* A file that the program reads, opened here since it may be closed to the program's user. Named
 * after `option` as NUMBER=PATH. */
int program_add_file(struct program *program, const char *option, const char *path, error *err);

/* Appends to `text` a name by which the program can read this folder: where its user cannot pass
 * the folders above (/root, mostly), it is opened here and named through the descriptor. Fails
 * ERR_BAD_REQUEST  the path is too long; ERR_INTERNAL; system errors */
int program_folder(struct program *program, const char *folder, char *text, size_t size,
                   error *err);

/* Starts it, in a session of its own. Gives its pid and a pidfd, which the caller closes. */
int program_start(struct program *program, pid_t *ret_pid, int *ret_pidfd, error *err);
