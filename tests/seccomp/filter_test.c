/* filter_test.c - the compiled filter against the kernel: every row of the table is reached by a
 * real call.
 *
 *     filter_test FILTER                  a TAP line for each row
 *     filter_test FILTER COMMAND [ARG]…   runs a command under the filter; refusals are said on
 * stderr
 *
 * Each row has a child of its own that installs the filter as glovebox-init does, with a listener,
 * and makes one call. A refused one must arrive at the listener and come back with the row's error;
 * a failing one must not arrive; an allowed one must end as it does without a filter. The arguments
 * are nonsense (no descriptor, no address), so nothing happens that matters, and the child is
 * nobody. */
#include "base/cleanup.h"
#include "base/table.h"
#include "seccomp/refusals.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum expectation { EXPECT_ALLOW, EXPECT_REFUSE, EXPECT_FAIL };

struct filter_case {
    const char *name;
    unsigned call;
    enum expectation expected;
    int os;
    uint64_t arguments[6];
};

#include CASES

enum { NOBODY = 65534, UPROBE_CALLS = 335 };

static struct sock_filter code[BPF_MAXINSNS];
static struct sock_fprog program = { 0, code };

static void die(const char *what)
{
    perror(what);
    _exit(99);
}

static void read_filter(const char *path)
{
    auto_fd file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? -1 : read(file, code, sizeof code);
    if (size <= 0 || (size_t) size % sizeof code[0] != 0)
        die(path);
    program.len = (unsigned short) ((size_t) size / sizeof code[0]);
}

static void send_fd(int socket, int fd)
{
    char byte = 0;
    struct iovec part = { &byte, 1 };
    union {
        char bytes[CMSG_SPACE(sizeof fd)];
        struct cmsghdr header;
    } control = { 0 };
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
    };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    if (sendmsg(socket, &message, 0) != 1)
        die("send the listener");
}

static int receive_fd(int socket)
{
    char byte = 0;
    struct iovec part = { &byte, 1 };
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr header;
    } control = { 0 };
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
    };
    int fd = -1;
    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message))
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

/* In the child: nobody, no new privileges, behind the filter. */
static void enter_filter(int socket, bool become_nobody)
{
    if (become_nobody && geteuid() == 0 &&
        (setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0))
        die("become nobody");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        die("no_new_privs");
    long listener =
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    if (listener < 0)
        die("install the filter");
    send_fd(socket, (int) listener);
    (void) close((int) listener);
}

/* Answers one notification as glovebox-init does. Gives the call, or -1 if the caller has gone. */
static int answer(int listener, bool say)
{
    struct seccomp_notif asked;
    memset(&asked, 0, sizeof asked);
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) < 0)
        return -1;
    const uint64_t *arguments = (const uint64_t *) asked.data.args;
    const struct refusal *row = find_refusal((uint32_t) asked.data.nr, arguments);
    struct seccomp_notif_resp answered = { .id = asked.id, .error = row ? -row->os : -EIO };
    if (say)
        (void) fprintf(stderr, "[refused %s(%#llx, %#llx, %#llx): %s]\n", row ? row->name : "?",
                       asked.data.args[0], asked.data.args[1], asked.data.args[2],
                       row ? row->why : "?");
    (void) ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answered);
    return asked.data.nr;
}

struct result {
    int os;       /* of the call; 0 if it succeeded */
    int notified; /* the call that arrived at the listener, else -1 */
    int status;   /* as wait() gives it */
};

static long make_call(const struct filter_case *row)
{
    const uint64_t *a = row->arguments;
    return syscall((long) row->call, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static struct result try_case(const struct filter_case *row, bool filtered)
{
    struct result result = { .os = -1, .notified = -1 };
    int sockets[2], report[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0 ||
        pipe2(report, O_CLOEXEC) < 0)
        die("make channels");
    (void) fflush(stdout);
    pid_t parent = getpid();
    pid_t child = fork();
    if (child == 0) {
        if (filtered) {
            enter_filter(sockets[1], true);
        } else if (geteuid() == 0 && (setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
                                      setresuid(NOBODY, NOBODY, NOBODY) < 0)) {
            die("become nobody");
        }
        pid_t self = getpid();
        errno = 0;
        int os = make_call(row) < 0 ? errno : 0;
        if (getpid() == self) /* a successful fork has a second one that must not report */
            (void) !write(report[1], &os, sizeof os);
        _exit(0);
    }
    (void) parent;
    (void) close(sockets[1]);
    (void) close(report[1]);
    auto_fd listener = filtered ? receive_fd(sockets[0]) : -1;
    struct pollfd watched[] = { { report[0], POLLIN, 0 }, { listener, POLLIN, 0 } };
    while (poll(watched, COUNT_OF(watched), 5000) > 0) {
        if (watched[1].revents & POLLIN)
            result.notified = answer(listener, false);
        else if (watched[1].revents)
            watched[1].fd = -1;
        if (watched[0].revents) {
            (void) !read(report[0], &result.os, sizeof result.os);
            break;
        }
    }
    (void) kill(child, SIGKILL);
    (void) waitpid(child, &result.status, 0);
    (void) close(sockets[0]);
    (void) close(report[0]);
    return result;
}

static int number;
static int failures;

static void say(bool good, const char *name, const char *found)
{
    number++;
    failures += !good;
    (void) printf("%sok %d - %s%s%s\n", good ? "" : "not ", number, name, good ? "" : ": ",
                  good ? "" : found);
}

static void check_row(const struct filter_case *row)
{
    char found[160], name[96];
    static const char *const meant[] = { "is allowed", "is refused", "fails" };
    struct result result = try_case(row, true);
    bool good = false;
    switch (row->expected) {
    case EXPECT_REFUSE:
        good = result.notified == (int) row->call && result.os == row->os;
        break;
    case EXPECT_FAIL:
        good = result.notified < 0 && result.os == row->os;
        break;
    case EXPECT_ALLOW:
        good = result.notified < 0 && result.os == try_case(row, false).os;
        break;
    }
    (void) snprintf(name, sizeof name, "%s %s", row->name, meant[row->expected]);
    (void) snprintf(found, sizeof found, "errno %d instead of %d, notified %d, status %#x",
                    result.os, row->os, result.notified, (unsigned) result.status);
    say(good, name, found);
}

/* What stands before the table. */
static void check_numbers(void)
{
    static const struct {
        const char *name;
        unsigned call;
        bool killed;
    } facts[] = {
        { "a number that no kernel has answers ENOSYS", 600, false },
        { "a far number answers ENOSYS", 0x3fffffff, false },
        { "an x32 number kills", 0x40000000 | 39, true },
        { "an x32 number of x32's own kills", 0x40000000 | 512, true },
    };
    for_each(fact, facts) {
        struct filter_case row = { fact->name, fact->call, EXPECT_FAIL, ENOSYS, { 0 } };
        struct result result = try_case(&row, true);
        bool killed = WIFSIGNALED(result.status) && WTERMSIG(result.status) == SIGSYS;
        say(fact->killed ? killed : result.os == ENOSYS, fact->name, strerror(result.os));
    }
}

#ifdef __x86_64__
/* getpid by the 32-bit door. Kernels without that door answer with SIGSEGV. */
static void check_other_architecture(void)
{
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0)
        die("make channels");
    pid_t child = fork();
    if (child == 0) {
        enter_filter(sockets[1], true);
        long call = 20;
        __asm__ volatile("int $0x80" : "+a"(call) : : "memory");
        _exit(1);
    }
    int status = 0;
    (void) waitpid(child, &status, 0);
    (void) close(sockets[0]);
    (void) close(sockets[1]);
    bool killed =
        WIFSIGNALED(status) && (WTERMSIG(status) == SIGSYS || WTERMSIG(status) == SIGSEGV);
    say(killed, "a call by the 32-bit door kills", "it was answered");
}
#else
static void check_other_architecture(void)
{
}
#endif

/* For trying programs by hand: they run as the caller, so that their files can be read. */
static int run_command(char **command)
{
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0)
        die("make channels");
    pid_t child = fork();
    if (child == 0) {
        enter_filter(sockets[1], false);
        (void) execvp(command[0], command);
        die(command[0]);
    }
    (void) close(sockets[1]);
    auto_fd listener = receive_fd(sockets[0]);
    struct pollfd watched = { listener, POLLIN, 0 };
    while (poll(&watched, 1, -1) > 0 && (watched.revents & POLLIN))
        (void) answer(listener, true);
    int status = 0;
    (void) waitpid(child, &status, 0);
    (void) close(sockets[0]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    read_filter(argv[1]);
    if (argc > 2)
        return run_command(argv + 2);
    for_each(row, cases)
        if (row->call != UPROBE_CALLS && row->call != UPROBE_CALLS + 1) /* these pass any filter */
            check_row(row);
    check_numbers();
    check_other_architecture();
    (void) printf("1..%d\n", number);
    return failures > 0;
}
