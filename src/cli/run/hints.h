/* hints.h - hints for a person after `glovebox run`: why the program ended, which file it was not
 * given, which files it made that are not kept. */
#pragma once

#include "cli/run/run_arguments.h"

enum { HINT_TAIL = 2048 };

/* The last bytes that the program wrote to stderr. Zero-fill it. */
struct hints {
    char tail[HINT_TAIL + 1];
    size_t length;
};

void hints_hear(struct hints *hints, const char *data, size_t size);

/* Prints at most one line for each on stderr, and none if the result already says it. */
void hints_tell(const struct hints *hints, const struct run_arguments *arguments,
                const glb_outcome *outcome);
