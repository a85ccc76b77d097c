/* inline_images.h - pictures that cells show: drawn if the terminal can, else saved as files. */
#pragma once

#include "cli/tty/output_filter.h"

struct images {
    const char *folder; /* NULL: made in /tmp for the first picture */
    char made[32];
    unsigned count;
    bool is_drawn; /* terminal has kitty's or iTerm's protocol; set by images_open() */
    bool is_kitty;
};

void images_open(struct images *images, const char *folder, bool is_terminal);

/* Shows a picture, given in base64 by the daemon, and prints where it is saved, or why not. */
void images_show(struct images *images, struct terminal *terminal, const char *mime,
                 const char *base64);
