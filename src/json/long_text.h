/* long_text.h - a long text of a body past json-c, which takes a text byte by byte.
 *
 * While json-c is within a text, what it has of it lies in a buffer of its own, to which more may
 * be added. The first and the last bytes of each text go through json-c. */
#pragma once

#include <json.h>
#include <stddef.h>

/* How many bytes go on with a text: to its quote, a backslash or a control character. */
size_t long_text_plain_size(const char *data, size_t size);

/* Takes as much of the text that json-c is in as is plain or a common escape; none if it is in no
 * text. Returns how many bytes: what is next is for json-c itself. -1: no memory. */
ptrdiff_t long_text_take(struct json_tokener *tokener, const char *data, size_t size);
