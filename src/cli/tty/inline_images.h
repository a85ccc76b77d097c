/* inline_images.h - pictures that cells have shown: drawn by a terminal that can, else kept as
 * files. */
#pragma once

#include "cli/tty/output_filter.h"

struct images {
    const char *folder; /* NULL: one is made in /tmp for the first picture */
    char made[32];
    unsigned count;
    bool is_drawn; /* the terminal understands kitty's or iTerm's way; images_open() looks */
    bool is_kitty;
};

void images_open(struct images *images, const char *folder, bool is_terminal);

/* A picture in base64, as the daemon gave it; says where it is, or why it is not. */
void images_show(struct images *images, struct terminal *terminal, const char *mime,
                 const char *base64);
