/* child_process.h - a program to start: its arguments, descriptors and user.
 *
 * All is prepared before fork(2), so that the child only makes system calls: other threads may have
 * held any lock. It starts with an empty environment, and with the given descriptors only. */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <sys/types.h>

enum { PROGRAM_FIRST_FD = 3, PROGRAM_FDS_MAX = 40, PROGRAM_HIGH_FD = 128 };

/* One program to start: its arguments, and the descriptors it gets as 3, 4, 5 … */
struct program {
    char *path;
    size_t argument_count;
    char **arguments; /* owned, NULL after the last */
    size_t fd_count;
    int fds[PROGRAM_FDS_MAX]; /* borrowed */
    size_t opened_count;
    int opened[PROGRAM_FDS_MAX]; /* those that program_done() closes */
    uid_t becomes;               /* user and group; 0: unchanged */
    int death_signal;
    int log;
};

void program_done(struct program *program);

#define auto_program __attribute__((cleanup(program_done))) struct program

/* Each adds to the command line. Fails  ERR_INTERNAL  no memory, or too many descriptors. */
int program_add(struct program *program, error *err, const char *format, ...) PRINTF(3, 4);
int program_add_pair(struct program *program, const char *flag, const char *value, error *err);

/* Passes a descriptor, which stays the caller's, and adds `flag` with its number. */
int program_add_fd(struct program *program, const char *flag, int fd, error *err);

/* Passes a descriptor. Takes: `fd`, closed by program_done(), also when this fails.
 * Returns  its number in the program. */
int program_give(struct program *program, int fd, error *err);

/* Opens a file for the program, whose user may not be able to, and adds `option` NUMBER=PATH. */
int program_add_file(struct program *program, const char *option, const char *path, error *err);

/* Appends to `text` a path by which the program can read this folder: if its user cannot reach it
 * (mostly below /root), the folder is opened here, and the path leads through the descriptor. Fails
 * ERR_BAD_REQUEST  the path is too long; ERR_INTERNAL; system errors */
int program_folder(struct program *program, const char *folder, char *text, size_t size,
                   error *err);

/* Starts it, in a session of its own. Gives its pid and a pidfd, which the caller closes. */
int program_start(struct program *program, pid_t *ret_pid, int *ret_pidfd, error *err);
