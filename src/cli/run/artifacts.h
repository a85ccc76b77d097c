/* artifacts.h - writes the artifacts of a run beneath one folder of the host, and nowhere else. */
#pragma once

#include "base/error.h"

#include <glovebox.h>

#include <stddef.h>

/* Opens the folder, makes it if it is missing, and checks that it is writable. */
int out_open(const char *path, int *ret_folder, error *err);

/* Source and destination. */
struct out {
    int folder;
    glb_client *client;
    const glb_outcome *outcome;
};

/* Writes all artifacts of a run. Their names come from the sandbox: each part of a path is opened
 * beneath the folder and through no link, and a file is renamed to its name once it is complete.
 * Gives  *ret_written, the number of files written; a failure does not stop the others.
 * Fails  with the first failure. */
int out_write(const struct out *out, size_t *ret_written, error *err);
