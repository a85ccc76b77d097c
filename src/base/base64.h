/* base64.h - standard base64 with padding (RFC 4648, section 4). */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* How many characters encode `size` bytes. */
static inline size_t base64_size(size_t size)
{
    return (size + 2) / 3 * 4;
}

/* Writes base64_size(size) characters, without a NUL. */
void base64_encode(const void *data, size_t size, char *ret_text);

/* Checks the whole text and returns how many bytes it encodes; -1 if its length is not a multiple
 * of 4, or a character is wrong: *ret_bad is the offset of the first one. */
int64_t base64_check(const char *text, size_t length, size_t *ret_bad);

/* Decodes the first `size` bytes of a text that has been checked. */
void base64_read(const char *text, void *ret_data, size_t size);

/* Checks and decodes into `ret_data`, 3/4 of `length`. Returns bytes written; -1: no base64. */
int64_t base64_decode(const char *text, size_t length, void *ret_data);
