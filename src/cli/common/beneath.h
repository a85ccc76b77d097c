/* beneath.h - writes files whose names come from a sandbox, only below one folder of the host: each
 * part of a path is opened below it and through no link; missing folders are made. A file is
 * written under a temporary name, then renamed: readers never see a part of it, and an existing
 * link is replaced, not followed. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

struct beneath_file {
    int fd;           /* write here */
    int folder;       /* the folder of the file */
    const char *name; /* borrowed from its path */
    char temporary[32];
};

/* `mode`: permissions, less the umask. On failure nothing is open. */
int beneath_begin(struct beneath_file *file, int folder, const char *path, mode_t mode, error *err);
/* Renames the file if it is complete, else removes it; closes it. */
int beneath_end(struct beneath_file *file, bool is_whole, error *err);

int beneath_make_folder(int folder, const char *path, error *err);
