/* percent_encode.c - %XX for every byte that a part of a URL may not contain. */
#include "http1/percent_encode.h"

#include <string.h>

void percent_encode(struct bytes *out, const char *data, size_t size, const char *plain)
{
    for (const char *at = data; at < data + size; at++)
        if (*at != '\0' && strchr(plain, *at))
            bytes_add(out, at, 1);
        else
            bytes_print(out, "%%%02X", (unsigned char) *at);
}
