/* http_method.c - see http_method.h. */
#include "base/http_method.h"

#include "base/table.h"

#include <string.h>

const struct http_method_row http_methods[HTTP_METHODS] = {
#define HTTP_METHOD(name, bit) { #name, HTTP_##name },
#include "base/http_methods.def"
};

uint32_t http_method_bit(const char *name, size_t size)
{
    for_each(row, http_methods)
        if (size == strlen(row->name) && memcmp(name, row->name, size) == 0)
            return row->bit;
    return 0;
}
