/* review_run.h - runs a helper that fetches packages, for a review or a build. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct review_run {
    const char *helper; /* Python code */
    const char *manifest,
        *folder;  /* paths of the template's manifest and of the archives' folder */
    int archives; /* the folder, open */
    const char *name, *version;
    const char *root; /* a new template's root, whose Python runs it; NULL: the host's programs */
    void (*line)(void *context, const char *text); /* gets lines of stderr; or NULL */
    void *context;
    bool
        on_host; /* apt fetches from an index whose signatures it checks, as it does for the host */
};

/* Gives *ret_text, the helper's findings as JSON, which the caller frees.
 * Fails  ERR_UNAVAILABLE  with the helper's own message. */
int review_run(const struct review_run *run, char **ret_text, error *err);
