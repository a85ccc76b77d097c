/* line_editor.h - one line typed at a prompt: moved in, corrected, found again in the history,
 * which may hold entries of several lines.
 *
 * Keys: arrows, Home, End, Delete, Backspace; Ctrl-A E B F K U W L P N; Tab goes on with a word of
 * the history; Ctrl-C throws the line away, Ctrl-D ends an empty one. Where stdin is no terminal,
 * lines are read as they come. */
#pragma once

#include "base/clock.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <termios.h>

enum { LINE_MAX = 4096, HISTORY_MAX = 500 };

struct line_reader {
    bool is_terminal;
    int stop; /* as soon as it can be read, no more is typed: as after Ctrl-D; -1: none */
    struct termios before;
    char *history[HISTORY_MAX]; /* the oldest first */
    size_t history_count;
    FILE *kept;       /* the file of the history, to which new lines are added; NULL: none */
    char typed[1024]; /* read, and not looked at yet */
    size_t at, size;

    /* Every so often while a user may type at a terminal; set after line_open(). NULL: none */
    void (*beat)(void *user);
    void *user;
    int64_t beat_ms;
    deadline next_beat; /* ours */
};

/* `kept` is the path of the history, NULL for none; what cannot be read or written is no failure.
 * `stop` is borrowed until the end. */
void line_open(struct line_reader *reader, const char *kept, int stop);
void line_close(struct line_reader *reader);

enum { LINE_TYPED, LINE_ENDED, LINE_THROWN_AWAY };

/* Gives *ret_line without its end, borrowed until the next call. With new lines in it, it is an
 * entry of the history, as it was or changed. */
int line_read(struct line_reader *reader, const char *prompt, const char **ret_line);

/* Puts an entry behind the history, unless it is the last one there, or as long as LINE_MAX. */
void line_remember(struct line_reader *reader, const char *text);
