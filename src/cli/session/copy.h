/* copy.h - shared by the parts of `glovebox session cp`. */
#pragma once

#include "cli/session/session.h"

#include <sys/types.h>

enum { COPY_PATH_SIZE = 4096 };

struct copy {
    struct session_arguments *arguments;
    const char *id; /* the session as the user typed it */
    char session[SESSION_NAME_SIZE];
    int sources;    /* number of sources; the target follows them */
    const char *to; /* path of the target */
};

/* What is at a path. */
struct look {
    enum { LOOK_NOTHING, LOOK_FILE, LOOK_FOLDER, LOOK_OTHER } kind;
    mode_t mode; /* permissions */
};

/* Copies the content of the folder `from` of this machine to `path` in the session, which is made
 * if needed. Keeps links and permissions, as tar does. */
int copy_folder_in(const struct copy *copy, const char *from, const char *path, error *err);

/* Copies the content of the folder `path` of the session to `to`, which is made if needed: folders
 * and regular files with their permissions. Other files are named on stderr and left out. */
int copy_folder_out(const struct copy *copy, const char *path, const char *to, error *err);
