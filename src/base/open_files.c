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
