/* review_run.h - runs the helper that looks at a package which nobody has approved yet. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct review_run {
    const char *helper; /* Python code */
    const char *manifest,
        *folder;  /* paths of the template's manifest and of the archives' folder */
    int archives; /* the folder, open */
    const char *name, *version;
    bool
        on_host; /* apt fetches from an index whose signatures it checks, as it does for the host */
};

/* Gives *ret_text, what the helper has found as JSON, for the caller to free.
 * Fails  ERR_UNAVAILABLE  with the helper's own words. */
int review_run(const struct review_run *run, char **ret_text, error *err);
