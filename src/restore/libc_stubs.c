/* libc_stubs.c - functions that compilers call by themselves, also without a C library. */
#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memset(void *at, int value, size_t size);
int memcmp(const void *one, const void *other, size_t size);
size_t strlen(const char *text);

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    unsigned char *into = to;
    for (const unsigned char *byte = from; size > 0; size--)
        *into++ = *byte++;
    return to;
}

void *memset(void *at, int value, size_t size)
{
    for (unsigned char *byte = at; size > 0; size--)
        *byte++ = (unsigned char) value;
    return at;
}

int memcmp(const void *one, const void *other, size_t size)
{
    const unsigned char *a = one;
    const unsigned char *b = other;
    for (; size > 0; size--, a++, b++)
        if (*a != *b)
            return *a < *b ? -1 : 1;
    return 0;
}

size_t strlen(const char *text)
{
    size_t size = 0;
    while (text[size])
        size++;
    return size;
}
