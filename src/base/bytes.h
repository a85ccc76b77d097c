/* bytes.h - bytes that grow at their end.
 *
 * A failed allocation sets `failed`, so that callers need to check it only once, at the end. The
 * bytes do not end with NUL unless bytes_text() is used. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct bytes {
    char *data;
    size_t size;
    size_t room;
    bool failed;
};

void bytes_add(struct bytes *bytes, const void *data, size_t size);
void bytes_add_text(struct bytes *bytes, const char *text);
void bytes_print(struct bytes *bytes, const char *format, ...) PRINTF(2, 3);

/* Returns room for `more` bytes; the caller adds to `size` what it writes. NULL: out of memory. */
char *bytes_reserve(struct bytes *bytes, size_t more);

/* Adds all of `more`, which is empty afterwards. The larger of the two is not copied. */
void bytes_join(struct bytes *bytes, struct bytes *more);

/* Removes the first `size` bytes. */
void bytes_drop(struct bytes *bytes, size_t size);

/* Frees most of the room that is not used: for bytes that are complete and kept. */
void bytes_fit(struct bytes *bytes);

/* The bytes as text that ends with NUL (not counted in `size`); "" if out of memory. */
const char *bytes_text(struct bytes *bytes);

void bytes_done(struct bytes *bytes);

static inline void bytes_free_at_end(struct bytes *bytes)
{
    bytes_done(bytes);
}

#define auto_bytes __attribute__((cleanup(bytes_free_at_end))) struct bytes
