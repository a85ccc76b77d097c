/* bytes.c - doubles the allocation when it is full, so that many small additions are cheap. */
#include "base/bytes.h"

#include "base/huge_pages.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *bytes_reserve(struct bytes *bytes, size_t more)
{
    if (bytes->failed)
        return NULL;
    if (bytes->room - bytes->size >= more)
        return bytes->data + bytes->size;

    size_t room = bytes->room > 0 ? bytes->room : 256;
    while (room - bytes->size < more) {
        if (room > SIZE_MAX / 4) {
            bytes->failed = true;
            return NULL;
        }
        room *= 2;
    }
    char *data = realloc(bytes->data, room);
    if (!data) {
        bytes->failed = true;
        return NULL;
    }
    if (room >= 2 * (size_t) HUGE_PAGE)
        huge_pages_wanted(data, room);
    bytes->data = data;
    bytes->room = room;
    return data + bytes->size;
}

void bytes_add(struct bytes *bytes, const void *data, size_t size)
{
    if (size == 0)
        return;
    char *place = bytes_reserve(bytes, size);
    if (!place)
        return;
    memcpy(place, data, size);
    bytes->size += size;
}

void bytes_add_text(struct bytes *bytes, const char *text)
{
    bytes_add(bytes, text, strlen(text));
}

void bytes_print(struct bytes *bytes, const char *format, ...)
{
    for (size_t room = 96;;) {
        char *place = bytes_reserve(bytes, room);
        if (!place)
            return;
        va_list values;
        va_start(values, format);
        int used = vsnprintf(place, room, format, values);
        va_end(values);
        if (used < 0)
            return;
        if ((size_t) used < room) {
            bytes->size += (size_t) used;
            return;
        }
        room = (size_t) used + 1;
    }
}

void bytes_join(struct bytes *bytes, struct bytes *more)
{
    if (!more->failed && more->size > bytes->size && bytes_reserve(more, bytes->size)) {
        memmove(more->data + bytes->size, more->data, more->size);
        if (bytes->size > 0)
            memcpy(more->data, bytes->data, bytes->size);
        more->size += bytes->size;
        more->failed = bytes->failed;
        free(bytes->data);
        *bytes = *more;
    } else {
        bytes_add(bytes, more->data, more->size);
        bytes->failed = bytes->failed || more->failed;
        free(more->data);
    }
    *more = (struct bytes){ 0 };
}

void bytes_drop(struct bytes *bytes, size_t size)
{
    if (size >= bytes->size) {
        bytes->size = 0;
        return;
    }
    memmove(bytes->data, bytes->data + size, bytes->size - size);
    bytes->size -= size;
}

void bytes_fit(struct bytes *bytes)
{
    size_t room = bytes->size + bytes->size / 8 + 1;
    char *data = room < bytes->room ? realloc(bytes->data, room) : NULL;
    if (!data)
        return;
    bytes->data = data;
    bytes->room = room;
}

const char *bytes_text(struct bytes *bytes)
{
    char *end = bytes_reserve(bytes, 1);
    if (!end)
        return "";
    *end = '\0';
    return bytes->data;
}

void bytes_done(struct bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct bytes){ 0 };
}
