/* output_filter.h - what a program in a sandbox prints, on its way to the user.
 *
 * A pipe gets the bytes as they are. A terminal obeys escape sequences: they can change its title,
 * its keys, its clipboard, and hide text (CVE-2003-0063). There only newline, carriage return, tab
 * and colours (SGR) pass; every other control byte is shown, as ^[ or U+FFFD. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct terminal {
    int fd;
    bool is_terminal;
    bool colours; /* a colour was set and not reset at the end */
    size_t held;  /* bytes of an unfinished escape sequence or character */
    char hold[64];
    int failed; /* errno of the first write that failed */
};

void terminal_init(struct terminal *terminal, int fd);
void terminal_write(struct terminal *terminal, const char *data, size_t size);

/* Shows what is still held and resets colours. */
void terminal_done(struct terminal *terminal);
