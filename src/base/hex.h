/* hex.h - a hexadecimal digit, as texts of other people have it: in capitals or not. */
#pragma once

/* Its value, or -1 if it is none. */
static inline int hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}
