/* artifacts.h - writes what a run made beneath one folder of the host, and nowhere else. */
#pragma once

#include "base/error.h"

#include <glovebox.h>

#include <stddef.h>

/* Opens the folder, which is made if it is missing, and checks that files can be made in it. */
int out_open(const char *path, int *ret_folder, error *err);

/* From where to where. */
struct out {
    int folder;
    glb_client *client;
    const glb_outcome *outcome;
};

/* Writes every artifact of a run. Names come from the sandbox: each part of a path is opened
 * beneath the folder and through no link; a file is written whole under another name, then renamed.
 * Gives  *ret_written, the number that came through; one that fails does not stop the others.
 * Fails  with the first failure. */
int out_write(const struct out *out, size_t *ret_written, error *err);
