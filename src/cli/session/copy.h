/* copy.h - what the parts of `glovebox session cp` share. */
#pragma once

#include "cli/session/session.h"

#include <sys/types.h>

enum { COPY_PATH_SIZE = 4096 };

struct copy {
    struct session_arguments *arguments;
    const char *id; /* the session as it was typed */
    char session[SESSION_NAME_SIZE];
    int sources;    /* of the words; one more is the target */
    const char *to; /* a path on the target's side */
};

/* What stands somewhere. */
struct look {
    enum { LOOK_NOTHING, LOOK_FILE, LOOK_FOLDER, LOOK_OTHER } kind;
    mode_t mode; /* permissions */
};

/* What is in the folder `from` of this machine goes into `path` of the session, which is made.
 * Links and permissions are kept, as tar does. */
int copy_folder_in(const struct copy *copy, const char *from, const char *path, error *err);

/* What is in the folder `path` of the session goes into `to`, which is made: folders and regular
 * files with their permissions. Anything else is named on stderr and left out. */
int copy_folder_out(const struct copy *copy, const char *path, const char *to, error *err);
