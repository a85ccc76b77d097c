/* fault_calls.c - preloaded into a program that was linked with the C library dynamically: counts
 * its calls by kind (fault_calls.def), and lets those fail that the plan names. The plan is the
 * file that FAULT_PLAN names, which both sides map: it may change at any time.
 *
 * Used by fault_rig.py. What the C library calls for itself does not come by here. */
#undef _FORTIFY_SOURCE
#undef _FILE_OFFSET_BITS
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default")))

enum { SHORT = 4096, LOST = 4097, FRAMES = 24, WHERE_SIZE = 1024 };

enum kind {
#define FAULT(call, descriptor, errors) KIND_##call##_##descriptor,
#include "fault_calls.def"
    KINDS
};

/* As fault_rig.py has it. */
struct plan {
    int32_t kind;     /* the row whose calls are meant */
    int32_t after;    /* counted down; the call that makes it 0 fails */
    int32_t error;    /* errno, SHORT or LOST */
    int32_t for_ms;   /* so long all that follow fail, too */
    int64_t until_ns; /* until when that is; 0: not yet */
    int32_t failed;   /* calls that did */
    int32_t pid;      /* of the process that made the first of them */
    char where[WHERE_SIZE];
    int64_t counts[KINDS];
};

static struct plan *plan;
static char http_library[] = "libmicrohttpd";

/* Before main(), which gives up the right to open files. */
__attribute__((constructor)) static void prepare(void)
{
    const char *path = getenv("FAULT_PLAN"); /* NOLINT(concurrency-mt-unsafe): before main */
    int file = path ? (int) syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0)
        abort();
    long mapped =
        syscall(SYS_mmap, NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    (void) syscall(SYS_close, file);
    if (mapped == -1)
        abort();
    void *frames[2];
    (void) backtrace(frames, 2); /* loads what it needs */

    plan = (struct plan *) mapped; // NOLINT(performance-no-int-to-ptr)
}

static int64_t now_ns(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Who asked: "gloveboxd+0x1234" for our own code, the library's name for others. */
static void tell_where(void)
{
    void *frames[FRAMES];
    int count = backtrace(frames, FRAMES);
    size_t used = 0;
    for (int i = 3; i < count && used + 64 < sizeof plan->where; i++) {
        Dl_info info;
        if (dladdr(frames[i], &info) == 0 || !info.dli_fname)
            continue;
        const char *name = strrchr(info.dli_fname, '/');
        used += (size_t) snprintf(plan->where + used, sizeof plan->where - used, "%.24s+%#lx ",
                                  name ? name + 1 : info.dli_fname,
                                  (unsigned long) frames[i] - (unsigned long) info.dli_fbase);
    }
    plan->pid = getpid();
}

static int strike(enum kind kind)
{
    if (!plan)
        return 0;
    (void) __atomic_add_fetch(&plan->counts[kind], 1, __ATOMIC_RELAXED);
    if (__atomic_load_n(&plan->kind, __ATOMIC_ACQUIRE) != (int32_t) kind)
        return 0;
    int64_t until = __atomic_load_n(&plan->until_ns, __ATOMIC_RELAXED);
    if (until != 0) {
        if (now_ns() >= until)
            return 0;
    } else if (__atomic_sub_fetch(&plan->after, 1, __ATOMIC_RELAXED) != 0) {
        return 0;
    } else if (plan->for_ms != 0) {
        plan->until_ns = now_ns() + (int64_t) plan->for_ms * 1000000;
    }
    if (__atomic_add_fetch(&plan->failed, 1, __ATOMIC_RELAXED) == 1)
        tell_where();
    return plan->error;
}

static bool is_http(const void *caller)
{
    Dl_info info;
    return dladdr(caller, &info) != 0 && info.dli_fname && strstr(info.dli_fname, http_library);
}

/* The row for a descriptor of this kind, by what the call has rows for; KINDS: none. */
struct rows {
    enum kind file, socket, other, http;
};

static const struct rows read_rows = { KIND_read_file, KIND_read_socket, KIND_read_other, KINDS };
static const struct rows readv_rows = { KIND_readv_file, KINDS, KINDS, KINDS };
static const struct rows pread_rows = { KIND_pread_file, KINDS, KINDS, KIND_pread_http };
static const struct rows write_rows = { KIND_write_file, KIND_write_socket, KIND_write_other,
                                        KINDS };
static const struct rows writev_rows = { KIND_writev_file, KIND_writev_socket, KINDS, KINDS };
static const struct rows pwrite_rows = { KIND_pwrite_file, KINDS, KINDS, KINDS };
static const struct rows pwritev_rows = { KIND_pwritev_file, KINDS, KINDS, KINDS };
static const struct rows send_rows = { KINDS, KIND_send_socket, KINDS, KIND_send_http };
static const struct rows sendmsg_rows = { KINDS, KIND_sendmsg_socket, KINDS, KIND_sendmsg_http };
static const struct rows recv_rows = { KINDS, KIND_recv_socket, KINDS, KIND_recv_http };
static const struct rows recvmsg_rows = { KINDS, KIND_recvmsg_socket, KINDS, KINDS };
static const struct rows sendfile_rows = { KINDS, KINDS, KINDS, KIND_sendfile_http };
static const struct rows splice_rows = { KINDS, KIND_splice_other, KIND_splice_other, KINDS };

static enum kind row_of(struct rows rows, int fd, const void *caller)
{
    struct stat about;
    if (is_http(caller))
        return rows.http;
    if (syscall(SYS_newfstatat, fd, "", &about, AT_EMPTY_PATH) < 0)
        return rows.other;
    return S_ISSOCK(about.st_mode) ? rows.socket : S_ISREG(about.st_mode) ? rows.file : rows.other;
}

/* A call that may wait, and one on a counter of events, which is never full, has no EAGAIN. */
static bool may_wait(int fd, int flags)
{
    struct stat about;
    if (syscall(SYS_newfstatat, fd, "", &about, AT_EMPTY_PATH) == 0 && !S_ISSOCK(about.st_mode) &&
        !S_ISFIFO(about.st_mode))
        return true;
    return !(flags & MSG_DONTWAIT) && !(syscall(SYS_fcntl, fd, F_GETFL, 0) & O_NONBLOCK);
}

static bool is_packets(int fd)
{
    int type = 0;
    socklen_t size = sizeof type;
    return syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
           type != SOCK_STREAM;
}

/* What is to go wrong with this call; 0: nothing. A packet is sent and read as a whole, and the
 * connection of one breaks with the process behind it alone. A stream that is said to be broken is
 * broken, for both sides. */
static int fault_of(struct rows rows, int fd, int flags, const void *caller)
{
    enum kind kind = row_of(rows, fd, caller);
    int error = kind == KINDS ? 0 : strike(kind);
    bool is_broken = error == EPIPE || error == ECONNRESET;
    if ((error == SHORT || is_broken) && is_packets(fd))
        return 0;
    if (is_broken)
        (void) syscall(SYS_shutdown, fd, SHUT_RDWR);
    return error == EAGAIN && may_wait(fd, flags) ? EINTR : error;
}

static void *real_of(void **known, const char *name)
{
    if (!*known)
        *known = dlsym(RTLD_NEXT, name);
    if (!*known)
        abort();
    return *known;
}

static size_t less(size_t size, int error)
{
    return error == SHORT && size > 1 ? size / 2 : size;
}

/* What read(2) and its like become where the size of the buffer is known. */
ssize_t __read_chk(int fd, void *to, size_t size, size_t room);
ssize_t __pread64_chk(int fd, void *to, size_t size, off64_t at, size_t room);
ssize_t __recv_chk(int fd, void *to, size_t size, size_t room, int flags);

/* A call on a descriptor that moves `size` bytes. */
#define BYTES(result, name, flags, rows, parameters, arguments)             \
    SEEN result name parameters                                             \
    {                                                                       \
        static void *known;                                                 \
        int error = fault_of(rows, fd, flags, __builtin_return_address(0)); \
        if (error != 0 && error < SHORT) {                                  \
            errno = error;                                                  \
            return -1;                                                      \
        }                                                                   \
        size = less(size, error);                                           \
        return ((result(*) parameters) real_of(&known, #name)) arguments;   \
    }
BYTES(ssize_t, read, 0, read_rows, (int fd, void *to, size_t size), (fd, to, size))
BYTES(ssize_t, __read_chk, 0, read_rows, (int fd, void *to, size_t size, size_t room),
      (fd, to, size, room))
BYTES(ssize_t, pread64, 0, pread_rows, (int fd, void *to, size_t size, off64_t at),
      (fd, to, size, at))
BYTES(ssize_t, __pread64_chk, 0, pread_rows,
      (int fd, void *to, size_t size, off64_t at, size_t room), (fd, to, size, at, room))
BYTES(ssize_t, write, 0, write_rows, (int fd, const void *from, size_t size), (fd, from, size))
BYTES(ssize_t, pwrite64, 0, pwrite_rows, (int fd, const void *from, size_t size, off64_t at),
      (fd, from, size, at))
BYTES(ssize_t, send, flags, send_rows, (int fd, const void *from, size_t size, int flags),
      (fd, from, size, flags))
BYTES(ssize_t, recv, flags, recv_rows, (int fd, void *to, size_t size, int flags),
      (fd, to, size, flags))
BYTES(ssize_t, __recv_chk, flags, recv_rows,
      (int fd, void *to, size_t size, size_t room, int flags), (fd, to, size, room, flags))
BYTES(ssize_t, sendfile64, 0, sendfile_rows, (int fd, int from, off64_t *at, size_t size),
      (fd, from, at, size))
BYTES(ssize_t, splice, 0, splice_rows,
      (int fd, off64_t *at, int to, off64_t *to_at, size_t size, unsigned flags),
      (fd, at, to, to_at, size, flags))

/* The first half of the first part alone. */
static struct iovec half(const struct iovec *parts)
{
    return (struct iovec){ parts[0].iov_base, less(parts[0].iov_len, SHORT) };
}

#define PARTS(name, rows, parameters, arguments, half_arguments)            \
    SEEN ssize_t name parameters                                            \
    {                                                                       \
        static void *known;                                                 \
        int error = fault_of(rows, fd, 0, __builtin_return_address(0));     \
        if (error != 0 && error < SHORT) {                                  \
            errno = error;                                                  \
            return -1;                                                      \
        }                                                                   \
        ssize_t(*real) parameters = real_of(&known, #name);                 \
        struct iovec first = count > 0 ? half(parts) : (struct iovec){ 0 }; \
        return error == SHORT ? real half_arguments : real arguments;       \
    }

PARTS(readv, readv_rows, (int fd, const struct iovec *parts, int count), (fd, parts, count),
      (fd, &first, 1))
PARTS(writev, writev_rows, (int fd, const struct iovec *parts, int count), (fd, parts, count),
      (fd, &first, 1))
PARTS(pwritev64, pwritev_rows, (int fd, const struct iovec *parts, int count, off64_t at),
      (fd, parts, count, at), (fd, &first, 1, at))

SEEN ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    static void *known;
    int error = fault_of(sendmsg_rows, fd, flags, __builtin_return_address(0));
    if (error != 0 && error < SHORT) {
        errno = error;
        return -1;
    }
    ssize_t (*real)(int, const struct msghdr *, int) = real_of(&known, "sendmsg");
    if (error != SHORT || message->msg_iovlen == 0)
        return real(fd, message, flags);
    struct iovec first = half(message->msg_iov);
    struct msghdr lesser = *message;
    lesser.msg_iov = &first;
    lesser.msg_iovlen = 1;
    return real(fd, &lesser, flags);
}

/* As if there was no room for them in this process. */
static void lose_descriptors(struct msghdr *message)
{
    for (struct cmsghdr *one = CMSG_FIRSTHDR(message); one; one = CMSG_NXTHDR(message, one)) {
        const int *fds = (const int *) (const void *) CMSG_DATA(one);
        if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < (one->cmsg_len - CMSG_LEN(0)) / sizeof *fds; i++)
            (void) close(fds[i]);
        message->msg_flags |= MSG_CTRUNC;
    }
    if (message->msg_flags & MSG_CTRUNC)
        message->msg_controllen = 0;
}

SEEN ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    static void *known;
    int error = fault_of(recvmsg_rows, fd, flags, __builtin_return_address(0));
    if (error != 0 && error < SHORT) {
        errno = error;
        return -1;
    }
    ssize_t got =
        ((ssize_t(*)(int, struct msghdr *, int)) real_of(&known, "recvmsg"))(fd, message, flags);
    if (error == LOST && got >= 0)
        lose_descriptors(message);
    return got;
}

/* A call that does nothing when it fails. */
#define PLAIN(result, name, failed, kind, parameters, arguments)          \
    SEEN result name parameters                                           \
    {                                                                     \
        static void *known;                                               \
        int error = strike(kind);                                         \
        if (error != 0) {                                                 \
            errno = error;                                                \
            return failed;                                                \
        }                                                                 \
        return ((result(*) parameters) real_of(&known, #name)) arguments; \
    }

/* Nothing waits in accept4(2), epoll_wait(2) and poll(2) that could not wait again. */
PLAIN(int, accept4, -1, KIND_accept4_none,
      (int fd, struct sockaddr *from, socklen_t *size, int flags), (fd, from, size, flags))
PLAIN(int, connect, -1, KIND_connect_none, (int fd, const struct sockaddr *to, socklen_t size),
      (fd, to, size))
PLAIN(int, socket, -1, KIND_socket_none, (int family, int type, int protocol),
      (family, type, protocol))
PLAIN(int, socketpair, -1, KIND_socketpair_none, (int family, int type, int protocol, int pair[2]),
      (family, type, protocol, pair))
PLAIN(int, getsockopt, -1, KIND_getsockopt_none,
      (int fd, int level, int name, void *value, socklen_t *size), (fd, level, name, value, size))
PLAIN(int, setsockopt, -1, KIND_setsockopt_none,
      (int fd, int level, int name, const void *value, socklen_t size),
      (fd, level, name, value, size))
PLAIN(int, shutdown, -1, KIND_shutdown_none, (int fd, int how), (fd, how))
PLAIN(int, pipe2, -1, KIND_pipe2_none, (int pair[2], int flags), (pair, flags))
PLAIN(int, memfd_create, -1, KIND_memfd_create_none, (const char *name, unsigned flags),
      (name, flags))
PLAIN(int, eventfd, -1, KIND_eventfd_none, (unsigned count, int flags), (count, flags))
PLAIN(int, epoll_create1, -1, KIND_epoll_create1_none, (int flags), (flags))
PLAIN(int, epoll_wait, -1, KIND_epoll_wait_none,
      (int epoll, struct epoll_event *events, int most, int timeout),
      (epoll, events, most, timeout))
PLAIN(int, epoll_pwait, -1, KIND_epoll_wait_none,
      (int epoll, struct epoll_event *events, int most, int timeout, const sigset_t *mask),
      (epoll, events, most, timeout, mask))
PLAIN(int, poll, -1, KIND_poll_none, (struct pollfd * fds, nfds_t count, int timeout),
      (fds, count, timeout))
PLAIN(DIR *, opendir, NULL, KIND_opendir_none, (const char *path), (path))
PLAIN(DIR *, fdopendir, NULL, KIND_fdopendir_none, (int fd), (fd))
PLAIN(FILE *, fdopen, NULL, KIND_fdopen_none, (int fd, const char *mode), (fd, mode))
PLAIN(struct dirent64 *, readdir64, NULL, KIND_readdir_none, (DIR * folder), (folder))
PLAIN(int, flock, -1, KIND_flock_file, (int fd, int how), (fd, how))
PLAIN(int, fsync, -1, KIND_fsync_file, (int fd), (fd))
PLAIN(int, fdatasync, -1, KIND_fdatasync_file, (int fd), (fd))
PLAIN(int, sync_file_range, -1, KIND_sync_file_range_file,
      (int fd, off64_t from, off64_t size, unsigned flags), (fd, from, size, flags))
PLAIN(int, ftruncate64, -1, KIND_ftruncate_file, (int fd, off64_t size), (fd, size))
PLAIN(int, fallocate64, -1, KIND_fallocate_file, (int fd, int mode, off64_t from, off64_t size),
      (fd, mode, from, size))
PLAIN(int, fstat64, -1, KIND_fstat_none, (int fd, struct stat64 *about), (fd, about))
PLAIN(int, fstatat64, -1, KIND_fstatat_none,
      (int folder, const char *path, struct stat64 *about, int flags), (folder, path, about, flags))
PLAIN(int, fstatfs64, -1, KIND_fstatfs_none, (int fd, struct statfs64 *about), (fd, about))
PLAIN(int, fstatvfs64, -1, KIND_fstatvfs_none, (int fd, struct statvfs64 *about), (fd, about))
PLAIN(int, access, -1, KIND_access_none, (const char *path, int mode), (path, mode))
PLAIN(int, faccessat, -1, KIND_faccessat_none, (int folder, const char *path, int mode, int flags),
      (folder, path, mode, flags))
PLAIN(int, renameat, -1, KIND_renameat_none,
      (int folder, const char *path, int to, const char *name), (folder, path, to, name))
PLAIN(int, link, -1, KIND_link_none, (const char *path, const char *name), (path, name))
PLAIN(int, linkat, -1, KIND_linkat_none,
      (int folder, const char *path, int to, const char *name, int flags),
      (folder, path, to, name, flags))
PLAIN(int, unlink, -1, KIND_unlink_none, (const char *path), (path))
PLAIN(int, unlinkat, -1, KIND_unlinkat_none, (int folder, const char *path, int flags),
      (folder, path, flags))
PLAIN(int, mkdir, -1, KIND_mkdir_none, (const char *path, mode_t mode), (path, mode))
PLAIN(int, mkdirat, -1, KIND_mkdirat_none, (int folder, const char *path, mode_t mode),
      (folder, path, mode))
#define MMAP_PARAMETERS (void *at, size_t size, int may, int flags, int fd, off64_t from)
PLAIN(void *, mmap64, MAP_FAILED, KIND_mmap_none, MMAP_PARAMETERS, (at, size, may, flags, fd, from))
PLAIN(void *, mmap, MAP_FAILED, KIND_mmap_none, MMAP_PARAMETERS, (at, size, may, flags, fd, from))
PLAIN(int, nanosleep, -1, KIND_nanosleep_none, (const struct timespec *time, struct timespec *left),
      (time, left))
PLAIN(pid_t, waitpid, -1, KIND_waitpid_none, (pid_t pid, int *status, int options),
      (pid, status, options))
PLAIN(pid_t, fork, -1, KIND_fork_none, (void), ())
PLAIN(int, pthread_create, error, KIND_pthread_create_none,
      (pthread_t * thread, const pthread_attr_t *with, void *(*begin)(void *), void *context),
      (thread, with, begin, context))
PLAIN(int, setrlimit64, -1, KIND_setrlimit_none,
      (__rlimit_resource_t what, const struct rlimit64 *limit), (what, limit))

/* Only what takes memory may lack some. */
SEEN int epoll_ctl(int epoll, int what, int fd, struct epoll_event *event)
{
    static void *known;
    bool http = is_http(__builtin_return_address(0));
    int error =
        what == EPOLL_CTL_ADD ? strike(http ? KIND_epoll_ctl_http : KIND_epoll_ctl_none) : 0;
    if (error != 0) {
        errno = error;
        return -1;
    }
    return ((int (*)(int, int, int, struct epoll_event *)) real_of(&known, "epoll_ctl"))(
        epoll, what, fd, event);
}

/* Calls with an argument that not all of them have. */
#define LAST(type)                       \
    __extension__({                      \
        va_list rest;                    \
        va_start(rest, last);            \
        type value = va_arg(rest, type); \
        va_end(rest);                    \
        value;                           \
    })
#define VARIADIC(name, kind, type, parameters, arguments)              \
    SEEN int name parameters                                           \
    {                                                                  \
        static void *known;                                            \
        int error = strike(kind);                                      \
        if (error != 0) {                                              \
            errno = error;                                             \
            return -1;                                                 \
        }                                                              \
        return ((int(*) parameters) real_of(&known, #name)) arguments; \
    }

VARIADIC(open, KIND_open_none, int, (const char *path, int last, ...), (path, last, LAST(int)))
VARIADIC(open64, KIND_open_none, int, (const char *path, int last, ...), (path, last, LAST(int)))
VARIADIC(openat, KIND_openat_none, int, (int folder, const char *path, int last, ...),
         (folder, path, last, LAST(int)))
VARIADIC(openat64, KIND_openat_none, int, (int folder, const char *path, int last, ...),
         (folder, path, last, LAST(int)))
VARIADIC(ioctl, KIND_ioctl_other, void *, (int fd, unsigned long last, ...),
         (fd, last, LAST(void *)))

/* Locks fail in their ways, copies of descriptors in theirs, the rest of fcntl(2) not at all. */
static int control(const char *name, void **known, int fd, int command, void *argument)
{
    bool is_lock = command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK;
    bool is_copy = command == F_DUPFD_CLOEXEC || command == F_DUPFD;
    int error = is_lock ? strike(KIND_fcntl_file) : is_copy ? strike(KIND_fcntl_other) : 0;
    if (error != 0) {
        errno = error;
        return -1;
    }
    return ((int (*)(int, int, ...)) real_of(known, name))(fd, command, argument);
}

SEEN int fcntl(int fd, int last, ...)
{
    static void *known;
    return control("fcntl", &known, fd, last, LAST(void *));
}

SEEN int fcntl64(int fd, int last, ...)
{
    static void *known;
    return control("fcntl64", &known, fd, last, LAST(void *));
}
