/* write_whole.h - all bytes to a file that takes a part at a time: a disk that is nearly full does,
 * and what it says to the rest is the cause. */
#pragma once

#include <errno.h>
#include <unistd.h>

/* Fails  -1 with errno. */
static inline int write_whole(int fd, const void *bytes, size_t size)
{
    const char *at = bytes;
    for (ssize_t wrote; size > 0; at += wrote, size -= (size_t) wrote)
        while ((wrote = write(fd, at, size)) < 0)
            if (errno != EINTR)
                return -1;
    return 0;
}
