/* beneath.h - files whose names a sandbox has made, written beneath one folder of the host and
 * nowhere else: each part of a path is opened beneath it and through no link, folders are made on
 * the way. A file is written whole under another name, then renamed: readers never see half of it,
 * and a link that lies there is replaced, not followed. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

struct beneath_file {
    int fd;           /* write here */
    int folder;       /* that it stands in */
    const char *name; /* borrowed from its path */
    char temporary[32];
};

/* `mode`: permissions, less the umask. On failure nothing is open. */
int beneath_begin(struct beneath_file *file, int folder, const char *path, mode_t mode, error *err);
/* It gets its name, or is removed; nothing is open any longer. */
int beneath_end(struct beneath_file *file, bool is_whole, error *err);

int beneath_make_folder(int folder, const char *path, error *err);
