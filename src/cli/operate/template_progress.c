/* template_progress.c - see template_progress.h. */
#include "cli/operate/template_progress.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void build_progress(void *context, unsigned step, unsigned steps, const char *name,
                    const char *detail)
{
    struct build_display *display = context;
    bool fresh = display->shown != step + 1;
    display->shown = step + 1;
    if (!display->terminal) {
        if (fresh)
            (void) fprintf(stderr, "glovebox: template %s: %s (%u of %u)\n", display->template,
                           name, step + 1, steps);
        return;
    }
    char bar[33], line[512];
    size_t done = (sizeof(bar) - 1) * step / steps;
    memset(bar, '#', done);
    memset(bar + done, '.', sizeof(bar) - 1 - done);
    bar[sizeof(bar) - 1] = '\0';
    (void) snprintf(line, sizeof(line), "%s [%s] %3" PRId64 " s  %s%s%s", display->template, bar,
                    (now_ms() - display->started_ms) / 1000, name, detail ? ": " : "",
                    detail ? detail : "");
    struct winsize window = { .ws_col = 80 };
    (void) ioctl(STDERR_FILENO, TIOCGWINSZ, &window);
    size_t width = window.ws_col > 8 ? window.ws_col - 1U : 79;
    for (unsigned char *byte = (unsigned char *) line; *byte; byte++)
        if (*byte < 0x20 || *byte == 0x7f)
            *byte = '?'; /* scripts of packages may print anything */
    if (strlen(line) > width)
        line[width] = '\0';
    (void) fprintf(stderr, "\r\033[K%s", line);
}

void build_progress_end(const struct build_display *display)
{
    if (display->terminal)
        (void) fputs("\r\033[K", stderr);
}
