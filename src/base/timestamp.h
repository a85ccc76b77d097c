/* timestamp.h - moments as people and programs read them: RFC 3339, in UTC. */
#pragma once

#include <stdint.h>

enum { TIMESTAMP_SIZE = 32 };

/* "2026-11-22T03:00:00Z" of milliseconds since 1970; "" of 0. Gives  `text`. */
const char *timestamp_write(int64_t at_ms, char text[TIMESTAMP_SIZE]);

/* The same with milliseconds, "2026-11-22T03:00:00.123Z". */
const char *timestamp_write_ms(int64_t at_ms, char text[TIMESTAMP_SIZE]);
