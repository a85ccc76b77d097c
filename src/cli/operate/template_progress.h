/* template_progress.h - shows the progress of a build: on a terminal as one line that is
 * overwritten, else as one line for each step. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct build_display {
    bool terminal;
    unsigned shown; /* step number + 1 */
    int64_t started_ms;
    const char *template;
};

/* For build_request.progress; `context` is the build_display. */
void build_progress(void *context, unsigned step, unsigned steps, const char *name,
                    const char *detail);
void build_progress_end(const struct build_display *display);
