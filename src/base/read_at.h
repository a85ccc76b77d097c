/* read_at.h - reads from a file, also if a signal or the file system makes reads partial. */
#pragma once

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>

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

/* Reads a small file as text, as those of /proc and of control groups: `path` beneath the folder,
 * which must be no link. At most room - 1 bytes; "" if it cannot be read. Returns how many bytes
 * there were, or -1. */
static inline ssize_t read_text_at(int folder, const char *path, char *text, size_t room)
{
    auto_fd file = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t got = file < 0 ? -1 : read_at(file, text, room - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    return got;
}
