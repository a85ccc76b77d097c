/* range.h - reads "Range: bytes=…" (RFC 9110, section 14). */
#pragma once

#include <stdint.h>

struct byte_range {
    uint64_t from, size;
};

/* RANGE_WHOLE: there is no range that is understood (another unit, several, nonsense), and the
 * whole is the right answer; RANGE_BEYOND: 416. */
enum { RANGE_WHOLE = 0, RANGE_PART = 1, RANGE_BEYOND = 2 };

/* Gives  *ret_range, which lies within `size`, with RANGE_PART. */
int range_read(const char *text, uint64_t size, struct byte_range *ret_range);
