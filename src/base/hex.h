/* hex.h - reads a hexadecimal digit, in lower or upper case. */
#pragma once

/* Its value; -1 if it is not one. */
static inline int hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}
