/* log_writer.h - lines on their way to stderr, for which the loop never waits.
 *
 * What the reader does not take yet waits here, 64 KiB of it; lines beyond that are dropped and
 * counted. A pipe or a terminal is opened once more, so that it can be asked not to block without
 * asking the other programs that hold it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { LOG_WAITING_MAX = 64 * 1024 };

void log_writer_open(void);  /* before the daemon's filter; without it stderr is asked each time */
void log_writer_close(void); /* what waits has a moment more to go */

void log_writer(const char *line, size_t size); /* one line, with its newline, of at most 1 KiB */
extern size_t log_writer_waiting;               /* bytes; log_writer.c alone writes it */
void log_writer_write_waiting(void);

/* Each turn of the loop asks. */
static inline void log_writer_flush(void)
{
    if (log_writer_waiting > 0)
        log_writer_write_waiting();
}

/* Lines that were dropped, once there is room to say so; forgets them. */
uint64_t log_writer_take_dropped(void);
