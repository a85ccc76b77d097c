/* screen_filter.h - passes the output of a full-screen program in a sandbox to a terminal.
 *
 * The program needs escape sequences to draw, so those that move, clear and colour pass. Long
 * sequences (OSC, DCS, APC, PM, SOS) and those that make a terminal answer are dropped: they could
 * set titles and clipboards, and type in place of the user (CVE-2003-0063, OSC 52). */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <termios.h>

struct screen {
    int in, out;
    bool is_raw;
    struct termios before;
    int failed; /* errno of the first write that failed */

    enum { SCREEN_PLAIN, SCREEN_ESCAPE, SCREEN_CSI, SCREEN_STRING, SCREEN_STRING_ESCAPE } state;
    bool is_on_other_page;
    bool after_c2; /* in UTF-8 U+009B is C2 9B */
    size_t held;   /* bytes of an incomplete sequence */
    char hold[64];

    enum { KEYS_LINE_START, KEYS_TILDE, KEYS_ELSEWHERE } keys;
};

/* Makes the terminal raw, so that all keys go to the program. Fails if `in` is no terminal. */
int screen_open(struct screen *screen, int in, int out, error *err);

/* Restores the terminal; may be called at any time and repeatedly. */
void screen_close(struct screen *screen);

void screen_draw(struct screen *screen, const char *data, size_t size);

/* Returns true for Enter ~ . which ends the connection. Leaves in `data` the bytes to send. */
bool screen_typed(struct screen *screen, const char *data, size_t *size);

void screen_size(const struct screen *screen, uint16_t *rows, uint16_t *columns);
