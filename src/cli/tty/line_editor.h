/* line_editor.h - reads a line typed at a prompt, with editing and a history, which may hold
 * entries of several lines.
 *
 * Keys: arrows, Home, End, Delete, Backspace; Ctrl-A E B F K U W L P N; Tab completes a word from
 * the history; Ctrl-C drops the line, Ctrl-D ends the input on an empty line. If stdin is no
 * terminal, lines are read as they are. */
#pragma once

#include "base/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <termios.h>

enum { LINE_MAX = 4096, HISTORY_MAX = 500 };

struct line_reader {
    bool is_terminal;
    int stop; /* when it becomes readable, the input ends, as by Ctrl-D; -1: none */
    struct termios before;
    char *history[HISTORY_MAX]; /* oldest first */
    size_t history_count;
    FILE *kept;       /* file of the history, which gets new lines; NULL: none */
    char typed[1024]; /* bytes read but not handled yet */
    size_t at, size;

    /* Called at intervals while a user may type; set it after line_open(). NULL: none */
    void (*beat)(void *user);
    void *user;
    int64_t beat_ms;
    deadline next_beat; /* private */
};

/* `kept` is the path of the history, NULL for none; failures to read or write it are ignored.
 * Borrows `stop` until line_close(). */
void line_open(struct line_reader *reader, const char *kept, int stop);
void line_close(struct line_reader *reader);

enum { LINE_TYPED, LINE_ENDED, LINE_THROWN_AWAY };

/* Gives *ret_line without its newline, borrowed until the next call. A line that contains newlines
 * is an entry of the history, perhaps edited. */
int line_read(struct line_reader *reader, const char *prompt, const char **ret_line);

/* Adds an entry to the history, unless it equals the last one or is as long as LINE_MAX. */
void line_remember(struct line_reader *reader, const char *text);
