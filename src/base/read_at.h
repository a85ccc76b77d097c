/* read_at.h - reads from a file, also if a signal or the file system makes reads partial. */
#pragma once

#include <errno.h>
#include <unistd.h>

/* Reads until `size` bytes have come or the file has ended. Returns how many came, or -1. */
static inline ssize_t read_at(int fd, void *to, size_t size, off_t from)
{
    size_t got = 0;
    for (ssize_t more = 1; got < size && more != 0; got += (size_t) more)
        while ((more = pread(fd, (char *) to + got, size - got, from + (off_t) got)) < 0)
            if (errno != EINTR)
                return -1;
    return (ssize_t) got;
}
