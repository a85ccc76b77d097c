/* run_arguments.h - the command lines of `glovebox run` and `glovebox exec`. */
#pragma once

#include "base/error.h"

#include <glovebox.h>

#include <stdbool.h>
#include <stddef.h>

enum { RUN_FILES_MAX = 1024, RUN_VARIABLES_MAX = 128, RUN_LIMITS_MAX = 64 };

struct run_arguments {
    const char *code_text; /* -c */
    const char *language;
    const char *policy;
    const char *template_name;
    const char *out;
    const char *receipt; /* where to write the receipt */
    const char *expect;  /* file with the expectation of the output */
    const char *state;
    const char *daemon;
    bool pass_stdin;
    bool json;
    bool no_wait; /* do not wait for a person's decision */
    bool private;
    bool verbose;

    size_t limit_count;
    glb_limit limits[RUN_LIMITS_MAX];
    size_t variable_count;
    const char *variables[RUN_VARIABLES_MAX + 1];

    size_t file_count;
    glb_file files[RUN_FILES_MAX]; /* owns contents and paths */

    /* The code; run_arguments_done() frees it. */
    char *code;
    size_t code_length;
    char *file_name;
    const char *const *command;
    const char *const *arguments;
    char *input;
    size_t input_length;
    char *expectation;
};

/* Reads the command line and every file that it names.
 * Returns  OPTIONS_HELP if help was printed
 * Fails    ERR_BAD_REQUEST, ERR_LIMIT, ERR_NOT_FOUND: "cause; fix" */
int run_arguments_read(struct run_arguments *arguments, bool is_exec, int argc, char **argv,
                       error *err);
void run_arguments_done(struct run_arguments *arguments);

/* Returns the options for the library; they borrow from `arguments`. */
glb_run_options run_arguments_options(const struct run_arguments *arguments);
