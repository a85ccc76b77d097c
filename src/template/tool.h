/* tool.h - runs one program while a template is built: on the host, or inside the new root.
 *
 * Every program dies with its caller. What it writes on stderr goes to `line`, line by line, and
 * its end is kept for the complaint. */
#pragma once

#include "base/error.h"

#include <signal.h>
#include <stdbool.h>

enum { TOOL_TAIL = 4096 };

/* Set by a signal handler: what runs is killed, and the caller fails with "interrupted". */
extern volatile sig_atomic_t tool_interrupted;

struct walls;

struct tool {
    char *const
        *arguments; /* NULL-ended; [0] is the whole path, or a name to look up on the host */
    char *const *variables;    /* NULL-ended; NULL = those of the caller */
    const struct walls *walls; /* run behind these (walls.h); NULL: on the host */
    int input;                 /* descriptor for stdin; 0 = nothing to read */
    int output;                /* descriptor for stdout; 0 = with stderr */
    void (*line)(void *context, const char *text); /* may be NULL */
    void *context;
    bool is_enough;       /* set by line(): what runs is ended, and the caller fails */
    char tail[TOOL_TAIL]; /* written: the end of stderr */
};

/* Fails  ERR_UNAVAILABLE  the program ended badly or cannot be started; `tail` may say why
 *        ERR_TIMEOUT      interrupted */
int tool_run(struct tool *tool, error *err);

/* Of `tail`, which loses its end of line. */
const char *tool_last_line(struct tool *tool);

/* As tool_run; what it writes on stdout is given as text, which the caller frees. */
int tool_read(struct tool *tool, char **ret_text, error *err);

/* True if a program of this name is on PATH or where root's programs are. */
bool tool_exists(const char *name);
