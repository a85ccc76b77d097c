/* timestamp.h - timestamps of RFC 3339, in UTC, with milliseconds. */
#pragma once

#include <stdint.h>

enum { TIMESTAMP_SIZE = 32 };

/* Writes milliseconds since 1970 as "2026-11-22T03:00:00.123Z"; times before year 1 or after 9999,
 * which programs cannot read, become the first or last of that range. Returns `text`. */
const char *timestamp_write(int64_t at_ms, char text[TIMESTAMP_SIZE]);

/* Reads milliseconds since 1970, also with an offset or without a fraction; 0: it is invalid. */
int64_t timestamp_read(const char *text);
