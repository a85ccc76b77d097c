/* log_writer.h - writes log lines to stderr without ever blocking the loop.
 *
 * Up to 64 KiB wait here while the reader is slow; further lines are dropped and counted. A pipe or
 * a terminal is opened a second time for O_NONBLOCK, which must not affect the other programs that
 * share the descriptor. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { LOG_WAITING_MAX = 64 * 1024 };

void log_writer_open(void);  /* before the daemon's filter; without it each line is polled for */
void log_writer_close(void); /* waits a moment for lines that are not written yet */

void log_writer(const char *line, size_t size); /* a line with its newline, at most 1 KiB */
extern size_t log_writer_waiting;               /* bytes; written by log_writer.c only */
void log_writer_write_waiting(void);

/* Called in each turn of the loop. */
static inline void log_writer_flush(void)
{
    if (log_writer_waiting > 0)
        log_writer_write_waiting();
}

/* Returns how many lines were dropped, when there is room to report it, and resets the count. */
uint64_t log_writer_take_dropped(void);
