/* search_path.h - finds files by name in folders separated by ':', the first one first. */
#pragma once

#include "base/error.h"

#include <limits.h>
#include <stddef.h>

/* Gives the next folder of a search path. Returns the rest of the path, NULL at the end. */
const char *search_path_next(const char *path, char directory[static PATH_MAX]);

/* Opens DIRECTORY/NAME.yaml in the first directory that has it. `what` is its kind, for failures.
 * Returns  the descriptor, -1 with *err. Gives  its path in `label`.
 * Fails  ERR_NOT_FOUND  no directory has it */
int search_path_open(const char *path, const char *name, const char *what,
                     char label[static PATH_MAX], error *err);

/* Reads a whole regular file of bounded size. Gives *ret_text, which the caller frees. */
int search_path_read(int fd, const char *label, char **ret_text, size_t *ret_length, error *err);
