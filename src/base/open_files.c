/* open_files.c - see open_files.h. */
#include "base/open_files.h"

#include <sys/resource.h>

unsigned long open_files_raise(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return 0;
    files.rlim_cur = files.rlim_max;
    (void) setrlimit(RLIMIT_NOFILE, &files);
    return getrlimit(RLIMIT_NOFILE, &files) < 0 ? 0 : files.rlim_cur;
}

enum {
    CONNECTIONS_MIN = 32,
    CONNECTIONS_MAX = OPEN_FILES_CONNECTIONS_MAX,
    OURS = 128,
    MOMENTARY = 16
};

unsigned open_files_for_connections(unsigned long max)
{
    unsigned long half = max > OURS ? (max - OURS) / 2 : 0;
    return half < CONNECTIONS_MIN   ? CONNECTIONS_MIN
           : half > CONNECTIONS_MAX ? CONNECTIONS_MAX
                                    : (unsigned) half;
}

bool open_files_leave_room(unsigned long max, int fd)
{
    return (unsigned long) fd + open_files_for_connections(max) + MOMENTARY < max;
}
