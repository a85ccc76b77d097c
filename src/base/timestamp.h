/* timestamp.h - moments as people and programs read them: RFC 3339, in UTC, with milliseconds. */
#pragma once

#include <stdint.h>

enum { TIMESTAMP_SIZE = 32 };

/* "2026-11-22T03:00:00.123Z" of milliseconds since 1970; years before 1 and after 9999, which
 * programs cannot read, are cut. Gives `text`. */
const char *timestamp_write(int64_t at_ms, char text[TIMESTAMP_SIZE]);

/* The milliseconds since 1970 again, also of a moment with an offset or without a fraction; 0 if it
 * is no such text. */
int64_t timestamp_read(const char *text);
