/* seccomp.c - installs the filter that was compiled from data/seccomp and loaded by the spawner. */
#include "init/walls.h"

#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

int limit_syscalls(const struct sock_filter *filter, unsigned instructions, int *ret_listener,
                   error *err)
{
    struct sock_fprog program = {
        .len = (unsigned short) instructions,
        .filter = (struct sock_filter *) (uintptr_t) filter,
    };
    long listener =
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    if (listener < 0)
        return fail_os(err, "install the system call filter");
    *ret_listener = (int) listener;
    return 0;
}
