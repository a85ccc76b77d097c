/* eight_bytes.h - eight bytes of a text at one look. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t eight_bytes(const void *text)
{
    uint64_t eight;
    memcpy(&eight, text, sizeof eight);
    return eight;
}

/* Is any of the eight bytes less than `least`, which is at most 0x80? A byte from 0x80 on counts as
 * none; and never does one that is not less make it true without one below that is. */
static inline bool eight_have_less(uint64_t eight, uint64_t least)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = UINT64_C(0x8080808080808080);
    return ((eight - ones * least) & ~eight & tops) != 0;
}

static inline bool eight_have(uint64_t eight, unsigned char byte)
{
    return eight_have_less(eight ^ UINT64_C(0x0101010101010101) * byte, 1);
}
