/* screen_filter.h - what a terminal program in a sandbox draws, on its way to a real terminal.
 *
 * It needs the terminal's escape sequences to draw; it gets those that move, clear and colour. The
 * long ones (OSC, DCS, APC, PM, SOS) and those that make a terminal answer are left out: they set
 * titles and clipboards, and type in the place of the user (CVE-2003-0063, OSC 52). */
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
    size_t held;   /* bytes of a sequence that is not whole */
    char hold[64];

    enum { KEYS_LINE_START, KEYS_TILDE, KEYS_ELSEWHERE } keys;
};

/* Makes the terminal raw, so that every key goes inside. Fails if `in` is no terminal. */
int screen_open(struct screen *screen, int in, int out, error *err);

/* Gives it back as it was; safe to call at any time, also twice. */
void screen_close(struct screen *screen);

void screen_draw(struct screen *screen, const char *data, size_t size);

/* Enter ~ . is for us: returns true. What is to be sent stays in `data`. */
bool screen_typed(struct screen *screen, const char *data, size_t *size);

void screen_size(const struct screen *screen, uint16_t *rows, uint16_t *columns);
