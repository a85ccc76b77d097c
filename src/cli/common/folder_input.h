/* folder_input.h - reads a folder of the caller as files of a run. Leaves out names that begin with
 * a dot, __pycache__, node_modules and venv, and everything but files and folders; follows no link.
 */
#pragma once

#include "base/error.h"

#include <glovebox.h>

#include <stdbool.h>
#include <stddef.h>

bool is_folder(const char *path);

/* The main file of a folder: __main__.py, main.py, index.js … Gives its name, a constant.
 * Fails  ERR_NOT_FOUND  there is none; says what to write instead */
int folder_entry(const char *folder, const char **ret_name, error *err);

/* Adds the files below `folder` as TARGET/PATH ("": PATH alone) to the array of `room` files, of
 * which *count are in use. Paths and contents belong to the caller, also after a failure.
 * `without`: a file at the top that is not added; NULL: none.
 * Fails  ERR_BAD_REQUEST  more than `room`; ERR_NOT_FOUND, ERR_TOO_LARGE */
struct folder_input {
    const char *folder, *target, *without;
    bool read_only;
};
int folder_read(const struct folder_input *input, glb_file *files, size_t room, size_t *count,
                error *err);
