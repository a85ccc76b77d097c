/* error.c - fills failures in place; a text that is too long is cut at its end. */
#include "base/error.h"
#undef fail
#undef fail_os
#undef under

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int fail(error *err, enum error_code code, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    *err = (error){ .code = (int32_t) code };
    (void) vsnprintf(err->text, sizeof err->text, format, values);
    va_end(values);
    return -1;
}

int fail_os(error *err, const char *format, ...)
{
    int os = errno;
    va_list values;
    va_start(values, format);
    *err = (error){ .code = ERR_SYSTEM, .os = os };
    int used = vsnprintf(err->text, sizeof err->text, format, values);
    va_end(values);
    if (used >= 0 && (size_t) used < sizeof err->text) {
        /* Unlike strerror(3), strerrordesc_np() takes no lock and is safe between fork and exec. */
        (void) snprintf(err->text + used, sizeof err->text - (size_t) used, ": %s",
                        strerrordesc_np(os) ?: "unknown error");
    }
    errno = os;
    return -1;
}

int under(error *err, const char *format, ...)
{
    error inner = *err;
    inner.text[sizeof inner.text - 1] = '\0';

    va_list values;
    va_start(values, format);
    int used = vsnprintf(err->text, sizeof err->text, format, values);
    va_end(values);
    if (used >= 0 && (size_t) used < sizeof err->text)
        (void) snprintf(err->text + used, sizeof err->text - (size_t) used, ": %.*s",
                        (int) (sizeof err->text - (size_t) used) - 3, inner.text);
    return -1;
}
