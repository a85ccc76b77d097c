/* utf8.h - checks for UTF-8, since programs in sandboxes can write any bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UTF8_INVALID = 0, UTF8_CUT = -1 };

/* The length of the character at `text` (1 to 4 bytes); UTF8_INVALID if there is none; UTF8_CUT if
 * `size` ends within a character. */
int utf8_character(const unsigned char *text, size_t size);

/* How many bytes from the beginning are UTF-8 (surrogates and overlong forms are not). */
size_t utf8_valid_size(const void *text, size_t size);

static inline bool utf8_is_valid(const void *text, size_t size)
{
    return utf8_valid_size(text, size) == size;
}

/* How many bytes at the end are the beginning of an incomplete character: 0 to 3. */
size_t utf8_cut_at_end(const void *text, size_t size);

/* The code point of the character of `size` bytes at `text`. */
uint32_t utf8_code_point(const unsigned char *text, int size);

/* Writes a code point. Returns its bytes, 1 to 4. */
size_t utf8_encode(uint32_t point, char ret_text[4]);

/* Is the character invisible, or does it change how others are shown? Controls (not tab and line
 * feed), marks that reorder text, blanks without width, variation selectors, tags. */
bool utf8_is_hidden(uint32_t point);
