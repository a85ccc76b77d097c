/* base64.c - see base64.h. */
#include "base/base64.h"

#include <stdbool.h>

/* The value of each digit plus one; 0: not a digit. */
static const unsigned char digit_values[256] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
    ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63, ['/'] = 64,
};

static uint32_t value_of(char digit)
{
    return (digit_values[(unsigned char) digit] - 1U) & 63;
}

static bool are_digits(const char text[4])
{
    const unsigned char *at = (const unsigned char *) text;
    return digit_values[at[0]] && digit_values[at[1]] && digit_values[at[2]] && digit_values[at[3]];
}

void base64_encode(const void *data, size_t size, char *ret_text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *at = data;
    for (size_t i = 0; i < size; i += 3, ret_text += 4) {
        size_t left = size - i;
        uint32_t three = (uint32_t) at[i] << 16 | (left > 1 ? (uint32_t) at[i + 1] << 8 : 0) |
                         (left > 2 ? at[i + 2] : 0);
        ret_text[0] = digits[three >> 18];
        ret_text[1] = digits[three >> 12 & 63];
        ret_text[2] = (char) (left > 1 ? digits[three >> 6 & 63] : '=');
        ret_text[3] = (char) (left > 2 ? digits[three & 63] : '=');
    }
}

int64_t base64_check(const char *text, size_t length, size_t *ret_bad)
{
    size_t padding = 0;
    while (padding < 2 && padding < length && text[length - 1 - padding] == '=')
        padding++;
    size_t good = 0;
    while (length - padding - good >= 4 && are_digits(text + good))
        good += 4;
    for (; good < length - padding; good++)
        if (!digit_values[(unsigned char) text[good]])
            break;
    *ret_bad = good;
    if (good < length - padding)
        return -1;
    return length % 4 == 0 ? (int64_t) (length / 4 * 3 - padding) : -1;
}

static uint32_t three_of(const char text[4])
{
    return value_of(text[0]) << 18 | value_of(text[1]) << 12 | value_of(text[2]) << 6 |
           value_of(text[3]);
}

void base64_read(const char *text, void *ret_data, size_t size)
{
    unsigned char *bytes = ret_data;
    for (; size >= 3; size -= 3, text += 4, bytes += 3) {
        uint32_t three = three_of(text);
        bytes[0] = (unsigned char) (three >> 16);
        bytes[1] = (unsigned char) (three >> 8);
        bytes[2] = (unsigned char) three;
    }
    if (size > 0) {
        uint32_t three = three_of(text);
        bytes[0] = (unsigned char) (three >> 16);
        if (size > 1)
            bytes[1] = (unsigned char) (three >> 8);
    }
}

int64_t base64_decode(const char *text, size_t length, void *ret_data)
{
    size_t bad;
    int64_t size = base64_check(text, length, &bad);
    if (size > 0)
        base64_read(text, ret_data, (size_t) size);
    return size;
}
