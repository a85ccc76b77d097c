/* percent_encode.h - writes bytes into a URL (RFC 3986, section 2.1). */
#pragma once

#include "base/bytes.h"

#include <stddef.h>

/* The bytes that are never encoded (RFC 3986, section 2.3). */
#define PERCENT_UNRESERVED "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
#define PERCENT_PATH       PERCENT_UNRESERVED "/"

/* Bytes in `plain` are copied; all others, NUL included, become %XX. */
void percent_encode(struct bytes *out, const char *data, size_t size, const char *plain);
