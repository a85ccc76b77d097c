/* long_text.h - gives long texts to json-c in blocks, since json-c itself takes a text byte by
 * byte.
 *
 * While json-c is inside a text it collects its bytes in a buffer, to which we append. The first
 * and the last bytes of each text go through json-c. */
#pragma once

#include <json.h>
#include <stddef.h>

/* How many bytes are plain: up to a quote, a backslash or a control character. */
size_t long_text_plain_size(const char *data, size_t size);

/* If json-c is inside a text, appends plain bytes and common escapes to it. Returns how many bytes
 * it took, 0 if json-c is not inside a text; the next byte is for json-c. -1: no memory. */
ptrdiff_t long_text_take(struct json_tokener *tokener, const char *data, size_t size);
