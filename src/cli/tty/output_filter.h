/* output_filter.h - passes the output of a program in a sandbox to the user.
 *
 * A pipe gets the bytes unchanged. A terminal obeys escape sequences, which can change its title,
 * keys and clipboard, and hide text (CVE-2003-0063). So a terminal gets only newline, carriage
 * return, tab and colours (SGR); other control bytes are shown as ^[ or U+FFFD. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct terminal {
    int fd;
    bool is_terminal;
    bool colours; /* a colour is set; reset it at the end */
    size_t held;  /* bytes of an incomplete escape sequence or character */
    char hold[64];
    int failed; /* errno of the first write that failed */
};

void terminal_init(struct terminal *terminal, int fd);
void terminal_write(struct terminal *terminal, const char *data, size_t size);

/* Shows the bytes that are held, and resets colours. */
void terminal_done(struct terminal *terminal);
