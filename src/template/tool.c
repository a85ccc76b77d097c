/* tool.c - clone, arrange the child's surroundings, exec; then read its stderr until it has ended.
 */
#include "template/tool.h"

#include "base/cleanup.h"
#include "base/table.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

volatile sig_atomic_t tool_interrupted;

static const char host_path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/* The child's only way out: one line to stderr, which is the parent's pipe. */
static _Noreturn void give_up(const char *what)
{
    const char *why = strerrordesc_np(errno);
    (void) dprintf(STDERR_FILENO, "%s: %s\n", what, why ? why : "unknown error");
    _exit(126);
}

static void write_to(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        give_up(path);
    (void) close(fd);
}

/* Makes the caller root of its new user namespace, with nobody else in it. */
static void map_self(uid_t user, gid_t group)
{
    char line[64];
    write_to("/proc/self/setgroups", "deny");
    (void) snprintf(line, sizeof(line), "0 %u 1", user);
    write_to("/proc/self/uid_map", line);
    (void) snprintf(line, sizeof(line), "0 %u 1", group);
    write_to("/proc/self/gid_map", line);
}

/* A device cannot be made in a user namespace, so the host's harmless ones are bound. */
static void bind_device(const char *name)
{
    char from[32], to[32];
    (void) snprintf(from, sizeof(from), "/dev/%s", name);
    (void) snprintf(to, sizeof(to), "dev/%s", name);
    int fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || mount(from, to, NULL, MS_BIND, NULL) < 0)
        give_up(from);
    (void) close(fd);
}

/* Without capabilities uid 0 is merely the owner of the tree. */
static void drop_capabilities(void)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct none[2] = { { 0 } };
    if (prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_capset, &header, none) < 0)
        give_up("drop capabilities");
}

static void stand_inside(const char *root)
{
    static const char *const devices[] = { "null", "zero", "full", "random", "urandom" };
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || chdir(root) < 0 ||
        mount("tmpfs", "dev", "tmpfs", MS_NOSUID, "mode=0755,size=64m") < 0 ||
        mount("tmpfs", "tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") < 0 ||
        mkdir("dev/shm", 01777) < 0)
        give_up("furnish the new root");
    for_each(device, devices)
        bind_device(*device);
    /* In a container the kernel may refuse a new /proc; what runs here can do without. */
    (void) mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
    if (chroot(".") < 0 || chdir("/") < 0)
        give_up("enter the new root");
    drop_capabilities();
}

static void stand_apart(void)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        give_up("stand apart from the host's mounts");
}

static void reset_signals(void)
{
    sigset_t none;
    (void) sigemptyset(&none);
    (void) sigprocmask(SIG_SETMASK, &none, NULL); /* NOLINT(concurrency-mt-unsafe): one thread */
    static const int ours[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
    for_each(number, ours)
        (void) signal(*number, SIG_DFL);
}

static _Noreturn void become(const struct tool *tool, int output, int errors, uid_t user,
                             gid_t group)
{
    (void) prctl(PR_SET_PDEATHSIG, tool->apart || tool->root ? SIGKILL : SIGTERM);
    reset_signals();
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(errors, STDERR_FILENO) < 0 ||
        dup2(output, STDOUT_FILENO) < 0)
        _exit(126);
    (void) close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    struct rlimit no_core = { 0, 0 };
    (void) setrlimit(RLIMIT_CORE, &no_core);
    (void) umask(022);
    if (tool->root && user != 0)
        map_self(user, group);
    if (tool->root)
        stand_inside(tool->root);
    else if (tool->apart)
        stand_apart();
    if (tool->variables)
        (void) execvpe(tool->arguments[0], tool->arguments, tool->variables);
    else
        (void) execvp(tool->arguments[0], tool->arguments);
    give_up(tool->arguments[0]);
}

static pid_t start(const struct tool *tool, int output, int errors)
{
    unsigned long flags = SIGCHLD;
    uid_t user = geteuid();
    gid_t group = getegid();
    if (tool->root)
        flags |= CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
    if (tool->root && user != 0)
        flags |= CLONE_NEWUSER;
    if (tool->apart)
        flags |= CLONE_NEWNS | CLONE_NEWPID;
    pid_t child = (pid_t) syscall(SYS_clone, flags, 0, 0, 0, 0);
    if (child == 0)
        become(tool, output, errors, user, group);
    return child;
}

/* Keeps the last bytes that were said. */
static void keep_tail(struct tool *tool, const char *bytes, size_t size)
{
    size_t room = sizeof(tool->tail) - 1, have = strlen(tool->tail);
    if (size > room) {
        bytes += size - room;
        size = room;
    }
    if (have + size > room) {
        size_t drop = have + size - room;
        memmove(tool->tail, tool->tail + drop, have - drop);
        have -= drop;
    }
    memcpy(tool->tail + have, bytes, size);
    tool->tail[have + size] = '\0';
}

struct lines {
    char text[1024];
    size_t length;
};

static void pass_lines(struct tool *tool, struct lines *lines, const char *bytes, size_t size)
{
    for (size_t index = 0; index < size; index++) {
        char byte = bytes[index];
        if (byte != '\n' && byte != '\r') {
            if (lines->length < sizeof(lines->text) - 1)
                lines->text[lines->length++] = byte;
            continue;
        }
        lines->text[lines->length] = '\0';
        if (lines->length > 0 && tool->line)
            tool->line(tool->context, lines->text);
        lines->length = 0;
    }
}

/* Reads until the program and all that it started have closed their stderr, or until interrupted.
 */
static void listen_to(struct tool *tool, int errors)
{
    struct lines lines = { .length = 0 };
    char bytes[4096];
    while (!tool_interrupted) {
        struct pollfd watched = { .fd = errors, .events = POLLIN };
        if (poll(&watched, 1, 500) <= 0)
            continue;
        ssize_t got = read(errors, bytes, sizeof(bytes));
        if (got <= 0)
            return;
        for (ssize_t index = 0; index < got; index++) /* the tail is text */
            if (bytes[index] == '\0')
                bytes[index] = ' ';
        keep_tail(tool, bytes, (size_t) got);
        pass_lines(tool, &lines, bytes, (size_t) got);
    }
}

static int wait_for(pid_t child, int *ret_status)
{
    while (waitpid(child, ret_status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return 0;
}

int tool_run(struct tool *tool, error *err)
{
    tool->tail[0] = '\0';
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return fail_os(err, "make a pipe");
    auto_fd errors = ends[0];
    auto_fd their_end = ends[1];
    const char *program = tool->arguments[0];
    pid_t child = start(tool, tool->output > 0 ? tool->output : their_end, their_end);
    if (child < 0 && errno == EPERM && (tool->root || tool->apart))
        return fail(
            err, ERR_UNAVAILABLE, "this machine gives uid %u no new namespaces; %s", geteuid(),
            geteuid() == 0 ? "give root CAP_SYS_ADMIN (a container: --privileged)"
                           : "build as root, or as root: sysctl user.max_user_namespaces=10000");
    if (child < 0)
        return fail_os(err, "start %s", program);
    (void) close(take_fd(&their_end));
    listen_to(tool, errors);
    if (tool_interrupted)
        (void) kill(child, tool->apart || tool->root ? SIGKILL : SIGTERM);
    int status = 0;
    if (wait_for(child, &status) < 0)
        return fail_os(err, "wait for %s", program);
    if (tool_interrupted)
        return fail(err, ERR_TIMEOUT, "interrupted");
    if (WIFSIGNALED(status))
        return fail(err, ERR_UNAVAILABLE, "%s was killed by signal %d", program, WTERMSIG(status));
    if (WEXITSTATUS(status) != 0)
        return fail(err, ERR_UNAVAILABLE, "%s ended with status %d", program, WEXITSTATUS(status));
    return 0;
}

int tool_read(struct tool *tool, char **ret_text, error *err)
{
    auto_fd output = memfd_create("output", MFD_CLOEXEC);
    if (output < 0)
        return fail_os(err, "keep the output of %s", tool->arguments[0]);
    tool->output = output;
    if (tool_run(tool, err) < 0)
        return -1;
    struct stat status;
    if (fstat(output, &status) < 0)
        return fail_os(err, "keep the output of %s", tool->arguments[0]);
    auto_text text = malloc((size_t) status.st_size + 1);
    if (!text || pread(output, text, (size_t) status.st_size, 0) != status.st_size)
        return fail_os(err, "keep the output of %s", tool->arguments[0]);
    text[status.st_size] = '\0';
    *ret_text = take_text(&text);
    return 0;
}

bool tool_exists(const char *name)
{
    char places[sizeof(host_path)];
    (void) snprintf(places, sizeof(places), "%s", host_path + sizeof("PATH=") - 1);
    char *rest = places;
    for (char *place = strsep(&rest, ":"); place; place = strsep(&rest, ":")) {
        char path[128];
        (void) snprintf(path, sizeof(path), "%s/%s", place, name);
        if (access(path, X_OK) == 0)
            return true;
    }
    return false;
}
