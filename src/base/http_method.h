/* http_method.h - methods of HTTP as a set of bits. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum http_method {
#define HTTP_METHOD(name, bit) HTTP_##name = 1 << (bit),
#include "base/http_methods.def"
};

enum {
#define HTTP_METHOD(name, bit) HTTP_INDEX_##name,
#include "base/http_methods.def"
    HTTP_METHODS
};

extern const struct http_method_row {
    const char *name;
    enum http_method bit;
} http_methods[HTTP_METHODS];

/* The bit of a method, 0 if it is unknown; case-sensitive (RFC 9110, section 9.1). */
uint32_t http_method_bit(const char *name, size_t size);
