/* chunked_text.h - text that is written piece by piece and taken by a reader in amounts of its
 * own. */
#pragma once

#include "base/bytes.h"

#include <string.h>

struct chunked_text {
    struct bytes text; /* the current piece */
    size_t taken;      /* bytes of it that were taken */
};

/* True if the piece was taken whole: call chunked_text_forget() and write the next. */
static inline bool chunked_text_are_taken(const struct chunked_text *pieces)
{
    return pieces->taken == pieces->text.size;
}

static inline void chunked_text_forget(struct chunked_text *pieces)
{
    pieces->text.size = pieces->taken = 0;
}

/* Copies the rest of the piece, at most `room` bytes. Returns how many. */
static inline size_t chunked_text_take(struct chunked_text *pieces, char *to, size_t room)
{
    size_t left = pieces->text.size - pieces->taken;
    size_t part = left < room ? left : room;
    if (part > 0)
        memcpy(to, pieces->text.data + pieces->taken, part);
    pieces->taken += part;
    return part;
}
