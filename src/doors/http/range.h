/* range.h - reads "Range: bytes=…" (RFC 9110, section 14). */
#pragma once

#include <stdint.h>

struct byte_range {
    uint64_t from, size;
};

/* RANGE_WHOLE: no range that is supported (another unit, several, malformed), so the whole is sent;
 * RANGE_BEYOND: 416. */
enum { RANGE_WHOLE = 0, RANGE_PART = 1, RANGE_BEYOND = 2 };

/* With RANGE_PART gives  *ret_range, which is within `size`. */
int range_read(const char *text, uint64_t size, struct byte_range *ret_range);
