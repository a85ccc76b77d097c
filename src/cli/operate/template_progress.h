/* template_progress.h - how a build is shown: on a terminal one line that is written over, else one
 * line a step. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct build_display {
    bool terminal;
    unsigned shown; /* step number + 1 */
    int64_t started_ms;
    const char *template;
};

/* build_request.progress; `context` is the display. */
void build_progress(void *context, unsigned step, unsigned steps, const char *name,
                    const char *detail);
void build_progress_end(const struct build_display *display);
