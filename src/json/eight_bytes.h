/* eight_bytes.h - tests eight bytes of a text at once. */
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

/* True if one of the eight bytes is less than `least`, which is at most 0x80. Bytes from 0x80 on
 * are never less. (A borrow may mark a byte wrongly, but only above one that is less.) */
static inline bool eight_have_less(uint64_t eight, uint64_t least)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = UINT64_C(0x8080808080808080);
    return ((eight - ones * least) & ~eight & tops) != 0;
}

static inline bool eight_have(uint64_t eight, unsigned char byte)
{
    return eight_have_less(eight ^ UINT64_C(0x0101010101010101) * byte, 1);
}
