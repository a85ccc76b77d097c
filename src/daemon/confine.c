/* confine.c - a seccomp filter with the system calls that an event loop needs. A call that is not
 * listed fails with EPERM; one that only an attacker would make ends the process. */
#include "daemon/confine.h"

#include "base/table.h"

#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>

static const char *const allowed[] = {
    /* clang-format off */
    /* descriptors that are open */
    "read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "lseek", "close", "fcntl",
    "fstat", "newfstatat", "statx", "ftruncate", "sendfile", "dup", "dup3", "ioctl", "fsync", "fdatasync", "sync_file_range",
    /* the log of receipts: a lock, reserved disk space, checkpoints replaced by rename */
    "flock", "fallocate", "renameat", "renameat2",
    /* sockets that are open, and new connections */
    "accept4", "recvfrom", "recvmsg", "sendto", "sendmsg", "shutdown", "getsockopt", "setsockopt",
    "getsockname", "getpeername",
    /* counters and blobs; what can be opened is decided by this process's user id */
    "openat", "open", "access", "faccessat", "faccessat2", "unlink", "fchmod", "fstatfs", "fallocate", "geteuid", "linkat", "unlinkat", "memfd_create", "getdents64", "readlinkat", "readlink",
    /* the loop */
    "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "eventfd2",
    "pipe2", "socketpair", "clock_gettime", "clock_nanosleep", "nanosleep", "gettimeofday", "restart_syscall", "timerfd_create",
    "timerfd_settime",
    /* memory */
    "brk", "mmap", "munmap", "mremap", "mprotect", "madvise",
    /* itself */
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "futex", "getpid", "gettid", "getuid",
    "getrandom", "exit", "exit_group", "sched_yield", "sched_getaffinity", "uname", "sysinfo", "prlimit64", "getrusage",
    "rseq", "set_robust_list", "membarrier",
    /* clang-format on */
};

static const char *const deadly[] = {
    /* clang-format off */
    "execve", "execveat", "fork", "vfork", "clone", "clone3", "ptrace", "mount", "umount2", "pivot_root", "chroot",
    "setns", "unshare", "setuid", "setgid", "setresuid", "process_vm_readv", "process_vm_writev", "bpf", "kexec_load",
    "init_module", "finit_module", "keyctl", "pidfd_getfd", "io_uring_setup", "connect", "open_by_handle_at",
    "perf_event_open", "userfaultfd"
    /* clang-format on */
};

/* Test builds only: a sanitizer makes many more calls. */
#if defined(__SANITIZE_ADDRESS__) || defined(FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION)
static const bool is_sanitized = true;
#else
static const bool is_sanitized = false;
#endif

static int add_rules(scmp_filter_ctx filter, const char *const *names, size_t count,
                     uint32_t action)
{
    for (size_t i = 0; i < count; i++) {
        int call = seccomp_syscall_resolve_name(names[i]);
        if (call == __NR_SCMP_ERROR)
            continue; /* a libseccomp that does not know it: the call stays refused */
        if (seccomp_rule_add(filter, action, call, 0) < 0)
            return -1;
    }
    return 0;
}

/* abort() sends SIGABRT to this process; tgkill to another process stays refused. */
static int allow_abort(scmp_filter_ctx filter)
{
    return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
                            SCMP_A2(SCMP_CMP_EQ, 6 /* SIGABRT */));
}

int confine_daemon(error *err)
{
    if (is_sanitized)
        return 0;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return fail_os(err, "set no_new_privs");
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(1 /* EPERM */));
    if (!filter)
        return fail(err, ERR_UNAVAILABLE, "make gloveboxd's own filter: no memory");
    (void) seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    (void) seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1); /* for the disk threads too */
    int result = add_rules(filter, allowed, COUNT_OF(allowed), SCMP_ACT_ALLOW);
    if (result == 0)
        result = add_rules(filter, deadly, COUNT_OF(deadly), SCMP_ACT_KILL_PROCESS);
    if (result == 0)
        result = allow_abort(filter);
    if (result == 0)
        result = seccomp_load(filter);
    seccomp_release(filter);
    if (result < 0)
        return fail(err, ERR_UNAVAILABLE, "load gloveboxd's own filter: error %d", -result);
    return 0;
}
