/* secret_file.h - reads a file with secrets, if no other user can. */
#pragma once

#include "base/error.h"

#include <stddef.h>

enum { SECRET_FILE_MAX = 65536 };

struct secret_file {
    int file;                /* open for reading */
    const char *what, *path; /* for failures: "secrets file" */
};

/* It must be a regular file of root or of this user, without permissions for others.
 * Fails  ERR_BAD_REQUEST  the cause and the fix, the file named; ERR_SYSTEM */
int secret_file_read(const struct secret_file *closed, char ret_text[SECRET_FILE_MAX],
                     size_t *ret_size, error *err);
