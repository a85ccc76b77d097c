/* chunked_text.h - text that is written piece by piece, for a reader that takes as much as it has
 * room for. */
#pragma once

#include "base/bytes.h"

#include <string.h>

struct chunked_text {
    struct bytes text; /* the piece that is on its way */
    size_t taken;      /* of it */
};

/* Has all been taken? Then the next piece may be written, after chunked_text_forget(). */
static inline bool chunked_text_are_taken(const struct chunked_text *pieces)
{
    return pieces->taken == pieces->text.size;
}

static inline void chunked_text_forget(struct chunked_text *pieces)
{
    pieces->text.size = pieces->taken = 0;
}

/* Copies what is left of the piece, at most `room` bytes. Returns how many. */
static inline size_t chunked_text_take(struct chunked_text *pieces, char *to, size_t room)
{
    size_t left = pieces->text.size - pieces->taken;
    size_t part = left < room ? left : room;
    if (part > 0)
        memcpy(to, pieces->text.data + pieces->taken, part);
    pieces->taken += part;
    return part;
}
