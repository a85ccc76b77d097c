/* write_whole.h - writes all bytes to a file. On a nearly full disk write(2) may write only a part;
 * the next call then fails with the cause. */
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
