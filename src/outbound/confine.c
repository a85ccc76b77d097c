/* confine.c - allows only what sockets and an event loop need: no file, no program, no other
 * process. So an attacker who takes over a program that connects outwards finds little there. */
#include "outbound/confine.h"

#include "base/table.h"

#include <seccomp.h>
#include <stdbool.h>
#include <sys/prctl.h>

static const char *const allowed[] = {
    /* clang-format off */
    "read", "write", "readv", "writev", "close", "fcntl", "ioctl", "fstat", "newfstatat", "splice", "pipe2",
    "socket", "socketpair", "connect", "bind", "accept4", "recvfrom", "recvmsg", "recvmmsg", "sendto", "sendmsg", "sendmmsg",
    "shutdown", "getsockopt", "setsockopt", "getsockname", "getpeername",
    "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "eventfd2",
    "clock_gettime", "clock_nanosleep", "nanosleep", "gettimeofday", "restart_syscall",
    "brk", "mmap", "munmap", "mremap", "mprotect", "madvise",
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "futex", "getpid", "gettid", "getuid",
    "geteuid", "getgid", "getegid", "getrandom", "exit", "exit_group", "sched_yield", "uname", "sysinfo", "prlimit64",
    "rseq", "set_robust_list", "membarrier",
    /* clang-format on */
};

/* Test builds only: sanitizers make many other calls. */
#if defined(__SANITIZE_ADDRESS__) || defined(FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION)
static const bool is_sanitized = true;
#else
static const bool is_sanitized = false;
#endif

int confine_outside(error *err)
{
    if (is_sanitized)
        return 0;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return fail_os(err, "set no_new_privs");
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(1 /* EPERM */));
    if (!filter)
        return fail(err, ERR_UNAVAILABLE, "make the filter: no memory");
    (void) seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    int result = 0;
    for_each(name, allowed) {
        int call = seccomp_syscall_resolve_name(*name);
        if (call != __NR_SCMP_ERROR && result == 0)
            result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0);
    }
    if (result == 0)
        result = seccomp_load(filter);
    seccomp_release(filter);
    if (result < 0)
        return fail(err, ERR_UNAVAILABLE, "load the filter: error %d", -result);
    return 0;
}
