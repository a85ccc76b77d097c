/* base64.c - see base64.h. */
#include "base/base64.h"

enum { NO_DIGIT = 64 };

static unsigned value_of(char digit)
{
    if (digit >= 'A' && digit <= 'Z')
        return (unsigned) (digit - 'A');
    if (digit >= 'a' && digit <= 'z')
        return (unsigned) (digit - 'a') + 26;
    if (digit >= '0' && digit <= '9')
        return (unsigned) (digit - '0') + 52;
    return digit == '+' ? 62 : digit == '/' ? 63 : NO_DIGIT;
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
    for (*ret_bad = 0; *ret_bad < length - padding; ++*ret_bad)
        if (value_of(text[*ret_bad]) == NO_DIGIT)
            return -1;
    return length % 4 == 0 ? (int64_t) (length / 4 * 3 - padding) : -1;
}

void base64_read(const char *text, void *ret_data, size_t size)
{
    unsigned char *bytes = ret_data;
    for (size_t i = 0; i < size; i += 3, text += 4) {
        uint32_t three = (value_of(text[0]) & 63) << 18 | (value_of(text[1]) & 63) << 12 |
                         (value_of(text[2]) & 63) << 6 | (value_of(text[3]) & 63);
        bytes[i] = (unsigned char) (three >> 16);
        if (i + 1 < size)
            bytes[i + 1] = (unsigned char) (three >> 8);
        if (i + 2 < size)
            bytes[i + 2] = (unsigned char) three;
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
