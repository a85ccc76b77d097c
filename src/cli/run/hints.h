/* hints.h - what a person wants to know after `glovebox run` beyond the program's own output: why
 * it ended, which file was not sent along, what was made and is not kept. */
#pragma once

#include "cli/run/run_arguments.h"

enum { HINT_TAIL = 2048 };

/* The end of what the program wrote to stderr. Zero-fill it. */
struct hints {
    char tail[HINT_TAIL + 1];
    size_t length;
};

void hints_hear(struct hints *hints, const char *data, size_t size);

/* At most one line for each, on stderr; none where the result says it already. */
void hints_tell(const struct hints *hints, const struct run_arguments *arguments,
                const glb_outcome *outcome);
