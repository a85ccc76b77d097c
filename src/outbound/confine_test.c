/* confine_test.c - the filter of glovebox-egress and glovebox-notify alone: what it refuses, and
 * that a process can still use a socket. Each attempt runs in a new process. */
#include "outbound/confine.h"

#include "base/table.h"
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ALLOWED = 100, NOT_CONFINED = 101 };

static long reads_a_file(void)
{
    return syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY | O_CLOEXEC, 0);
}

static long writes_a_file(void)
{
    return syscall(SYS_openat, AT_FDCWD, "/tmp", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
}

static long removes_a_file(void)
{
    return syscall(SYS_unlinkat, AT_FDCWD, "/nowhere/at-all", 0);
}

static long lists_a_folder(void)
{
    static char space[1024];
    return syscall(SYS_getdents64, AT_FDCWD, space, sizeof space);
}

static long starts_a_program(void)
{
    char name[] = "/bin/true";
    char *arguments[] = { name, NULL };
    char *environment[] = { NULL };
    return syscall(SYS_execve, name, arguments, environment);
}

static long forks(void)
{
    return syscall(SYS_clone, (long) SIGCHLD, 0L, 0L, 0L, 0L);
}

static long signals_its_parent(void)
{
    return syscall(SYS_kill, getppid(), 0);
}

static long traces_its_parent(void)
{
    return syscall(SYS_ptrace, PTRACE_SEIZE, getppid(), 0L, 0L);
}

static long reads_its_parents_memory(void)
{
    static char space[8];
    struct iovec here = { space, sizeof space }, there = { space, sizeof space };
    return syscall(SYS_process_vm_readv, getppid(), &here, 1L, &there, 1L, 0L);
}

static long mounts(void)
{
    return syscall(SYS_mount, "none", "/tmp", "tmpfs", 0L, NULL);
}

static long makes_namespaces(void)
{
    return syscall(SYS_unshare, (long) CLONE_NEWUSER);
}

static long becomes_another_user(void)
{
    return syscall(SYS_setresuid, getuid(), getuid(), getuid());
}

static long makes_an_executable_file_of_memory(void)
{
    return syscall(SYS_memfd_create, "code", 0L);
}

static long talks_to_a_socket(void)
{
    int pair[2];
    char byte = 'x';
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    return send(pair[0], &byte, 1, MSG_NOSIGNAL) == 1 && recv(pair[1], &byte, 1, 0) == 1 ? 0 : -1;
}

static long asks_for_its_attributes(void)
{
    return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
}

/* Returns the errno under the filter; ALLOWED if the call succeeded. */
static int attempt(long (*call)(void))
{
    int status = 0;
    pid_t child = fork();
    require(child >= 0, "a process");
    if (child == 0) {
        error err;
        if (confine_outside(&err) < 0)
            _exit(NOT_CONFINED);
        _exit(call() < 0 ? errno : ALLOWED);
    }
    require(waitpid(child, &status, 0) == child && WIFEXITED(status), "it exits: %d", status);
    return WEXITSTATUS(status);
}

TEST(behind_its_filter_egress_reads_no_file_and_starts_no_program)
{
    static const struct {
        const char *what;
        long (*call)(void);
        int result;
    } facts[] = {
        { "reads a file", reads_a_file, EPERM },
        { "writes a file", writes_a_file, EPERM },
        { "removes a file", removes_a_file, EPERM },
        { "lists a folder", lists_a_folder, EPERM },
        { "starts a program", starts_a_program, EPERM },
        { "forks", forks, EPERM },
        { "signals its parent", signals_its_parent, EPERM },
        { "traces its parent", traces_its_parent, EPERM },
        { "reads its parent's memory", reads_its_parents_memory, EPERM },
        { "mounts", mounts, EPERM },
        { "makes namespaces", makes_namespaces, EPERM },
        { "becomes another user", becomes_another_user, EPERM },
        { "makes a file of memory", makes_an_executable_file_of_memory, EPERM },
        { "asks for its own attributes", asks_for_its_attributes, EPERM },
        { "talks to a socket", talks_to_a_socket, ALLOWED },
    };
#if defined(__SANITIZE_ADDRESS__)
    return; /* the sanitizer needs more calls, so confine.c loads no filter then */
#endif
    for_each(fact, facts) {
        int result = attempt(fact->call);
        expect(result == fact->result, "%s: %d", fact->what, result);
    }
}

TESTS(CASE(behind_its_filter_egress_reads_no_file_and_starts_no_program))
