/* tool.h - runs a program of a build: on the host, or inside the new root.
 *
 * Every program is killed when its caller ends. Each line of its stderr goes to `line`, and the
 * last ones are kept for error messages. */
#pragma once

#include "base/error.h"

#include <signal.h>
#include <stdbool.h>

enum { TOOL_TAIL = 4096 };

/* Set by a signal handler: the program is killed, and the caller fails with "interrupted". */
extern volatile sig_atomic_t tool_interrupted;

struct walls;

struct tool {
    char *const *arguments;    /* NULL-ended; [0] is a path, or a name to look up on the host */
    char *const *variables;    /* NULL-ended; NULL = those of the caller */
    const struct walls *walls; /* run behind these (walls.h); NULL: on the host */
    int input;                 /* descriptor for stdin; 0 = nothing to read */
    int output;                /* descriptor for stdout; 0 = with stderr */
    void (*line)(void *context, const char *text); /* may be NULL */
    void *context;
    bool is_enough;       /* set by line(): the program is killed, and the caller fails */
    char tail[TOOL_TAIL]; /* written: the end of stderr */
};

/* Fails  ERR_UNAVAILABLE  the program failed or cannot be started; `tail` may say why
 *        ERR_TIMEOUT      interrupted */
int tool_run(struct tool *tool, error *err);

/* The last line of `tail`, whose newline is removed. */
const char *tool_last_line(struct tool *tool);

/* As tool_run(). Gives *ret_text, its stdout, which the caller frees. */
int tool_read(struct tool *tool, char **ret_text, error *err);

/* True if a program of this name is in PATH or in the folders of root's programs. */
bool tool_exists(const char *name);
