/* tool.c - clones a child, which raises the walls and execs; reads its stderr until it ends. */
#include "template/tool.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/table.h"
#include "template/walls.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT_MAX = 64 << 20, DISK_RESERVE = 256 << 20 };

volatile sig_atomic_t tool_interrupted;

static const char host_path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

static void reset_signals(void)
{
    sigset_t none;
    (void) sigemptyset(&none);
    (void) sigprocmask(SIG_SETMASK, &none, NULL); /* NOLINT(concurrency-mt-unsafe): one thread */
    static const int ours[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
    for_each(number, ours)
        (void) signal(*number, SIG_DFL);
}

/* A running program. */
struct running {
    pid_t child;
    int go; /* the child's ids are mapped: it waits for a byte, and ends when this is closed */
    struct build_group group;
    deadline end;
    deadline look; /* when to check the disk again */
    bool is_late, is_full;
};

static _Noreturn void become(const struct tool *tool, int output, int errors, int go)
{
    (void) prctl(PR_SET_PDEATHSIG, tool->walls ? SIGKILL : SIGTERM);
    reset_signals();
    int input = tool->input > 0 ? tool->input : open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (input < 0 || dup2(input, STDIN_FILENO) < 0 || dup2(errors, STDERR_FILENO) < 0 ||
        dup2(output, STDOUT_FILENO) < 0)
        _exit(126);
    (void) close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    struct rlimit no_core = { 0, 0 };
    (void) umask(022);
    if (tool->walls)
        walls_raise(tool->walls, go);
    else
        (void) setrlimit(RLIMIT_CORE, &no_core);
    if (tool->variables)
        (void) execvpe(tool->arguments[0], tool->arguments, tool->variables);
    else
        (void) execvp(tool->arguments[0], tool->arguments);
    const char *why = strerrordesc_np(errno);
    (void) dprintf(STDERR_FILENO, "%s: %s\n", tool->arguments[0], why ? why : "unknown error");
    _exit(126);
}

/* Sets the limits before the child does anything. */
static int let_go(const struct tool *tool, struct running *running, error *err)
{
    if (build_group_make(&running->group, err) < 0 ||
        build_group_join(&running->group, running->child, err) < 0 ||
        walls_map_ids(tool->walls, running->child, err) < 0)
        return -1;
    char byte = running->group.count > 0 ? WALLS_GO_IN_GROUP : WALLS_GO;
    return write(running->go, &byte, 1) == 1 ? 0 : fail_os(err, "start %s", tool->arguments[0]);
}

static int start(const struct tool *tool, int output, int errors, struct running *running,
                 error *err)
{
    int go[2];
    if (pipe2(go, O_CLOEXEC) < 0)
        return fail_os(err, "make a pipe");
    unsigned long flags = SIGCHLD | (tool->walls ? walls_namespaces(tool->walls) : 0);
    running->child = (pid_t) syscall(SYS_clone, flags, 0, 0, 0, 0);
    if (running->child == 0) {
        (void) close(go[1]);
        become(tool, output, errors, go[0]);
    }
    int why = errno;
    (void) close(go[0]);
    running->go = go[1];
    errno = why;
    if (running->child < 0 && tool->walls && (why == EPERM || why == ENOSPC || why == EINVAL))
        return fail(
            err, ERR_UNAVAILABLE, "this machine gives uid %u no new namespaces; %s", geteuid(),
            geteuid() == 0 ? "give root CAP_SYS_ADMIN (a container: --privileged), and as root: "
                             "sysctl user.max_user_namespaces=10000"
                           : "build as root, or as root: sysctl user.max_user_namespaces=10000");
    return running->child < 0 ? fail_os(err, "start %s", tool->arguments[0]) : 0;
}

/* Keeps the last bytes of the output. */
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

/* Is the disk nearly full? Some space must stay free for others. */
static bool fills_disk(const char *folder)
{
    struct statvfs room;
    if (!folder || statvfs(folder, &room) < 0)
        return false;
    uint64_t reserve = (uint64_t) room.f_blocks * room.f_frsize / 20;
    if (reserve > DISK_RESERVE)
        reserve = DISK_RESERVE;
    return (uint64_t) room.f_bavail * room.f_frsize < reserve ||
           (room.f_files > 0 && room.f_favail < room.f_files / 100);
}

static bool has_to_end(const struct tool *tool, struct running *running)
{
    if (!tool->walls)
        return tool_interrupted || tool->is_enough;
    running->is_late = deadline_has_passed(running->end);
    if (deadline_has_passed(running->look)) {
        running->look = deadline_in(100);
        running->is_full = running->is_full || fills_disk(tool->walls->disk);
    }
    return tool_interrupted || tool->is_enough || running->is_late || running->is_full;
}

/* Reads until the program and its children have closed stderr, or it must be ended. */
static void listen_to(struct tool *tool, int errors, struct running *running)
{
    struct lines lines = { .length = 0 };
    char bytes[4096];
    while (!has_to_end(tool, running)) {
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

/* A program that has closed stderr may still run: waits for it within its time limit. */
static void wait_in_time(struct running *running, const struct tool *tool)
{
    while (tool->walls && !has_to_end(tool, running)) {
        siginfo_t ended = { 0 };
        if (waitid(P_PID, (id_t) running->child, &ended, WEXITED | WNOWAIT | WNOHANG) < 0 ||
            ended.si_pid != 0)
            return;
        (void) poll(NULL, 0, 5);
    }
}

static int conclude(const struct tool *tool, const struct running *running, int status, error *err)
{
    const char *program = tool->arguments[0];
    if (tool_interrupted)
        return fail(err, ERR_TIMEOUT, "interrupted");
    if (tool->is_enough)
        return fail(err, ERR_UNAVAILABLE, "%s was ended", program);
    if (running->is_late)
        return fail(err, ERR_UNAVAILABLE, "%s was ended: it ran for more than %d minutes", program,
                    BUILD_MINUTES);
    if (running->is_full)
        return fail(
            err, ERR_UNAVAILABLE,
            "%s was ended: it has nearly filled the disk of '%s'; make room, or use --state "
            "DIR on another disk",
            program, tool->walls->disk);
    if (WIFSIGNALED(status) && tool->walls)
        return fail(err, ERR_UNAVAILABLE,
                    "%s was killed by signal %d; a build has %d MiB of memory and %d processes",
                    program, WTERMSIG(status), BUILD_MEMORY_MIB, BUILD_PROCESSES);
    if (WIFSIGNALED(status))
        return fail(err, ERR_UNAVAILABLE, "%s was killed by signal %d", program, WTERMSIG(status));
    if (WEXITSTATUS(status) != 0)
        return fail(err, ERR_UNAVAILABLE, "%s ended with status %d", program, WEXITSTATUS(status));
    return 0;
}

static int run(struct tool *tool, struct running *running, error *err)
{
    int ends[2];
    if (tool->walls && walls_load(tool->walls, err) < 0)
        return -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return fail_os(err, "make a pipe");
    auto_fd errors = ends[0], their_end = ends[1];
    if (start(tool, tool->output > 0 ? tool->output : their_end, their_end, running, err) < 0)
        return -1;
    (void) close(take_fd(&their_end));
    int result = tool->walls ? let_go(tool, running, err) : 0;
    if (result == 0) {
        listen_to(tool, errors, running);
        wait_in_time(running, tool);
    }
    if (result < 0 || tool_interrupted || tool->is_enough || running->is_late || running->is_full)
        (void) kill(running->child, tool->walls ? SIGKILL : SIGTERM);
    int status = 0;
    if (wait_for(running->child, &status) < 0)
        return fail_os(err, "wait for %s", tool->arguments[0]);
    return result < 0 ? -1 : conclude(tool, running, status, err);
}

int tool_run(struct tool *tool, error *err)
{
    struct running running = { .go = -1, .end = deadline_in(BUILD_MINUTES * 60LL * 1000) };
    tool->tail[0] = '\0';
    int result = run(tool, &running, err);
    close_fd(&running.go);
    build_group_done(&running.group);
    return result;
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
    if (status.st_size > OUTPUT_MAX)
        return fail(err, ERR_TOO_LARGE, "%s has printed more than %d MiB", tool->arguments[0],
                    OUTPUT_MAX >> 20);
    auto_text text = malloc((size_t) status.st_size + 1);
    if (!text || pread(output, text, (size_t) status.st_size, 0) != status.st_size)
        return fail_os(err, "keep the output of %s", tool->arguments[0]);
    text[status.st_size] = '\0';
    *ret_text = take_text(&text);
    return 0;
}

const char *tool_last_line(struct tool *tool)
{
    char *text = tool->tail;
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == '\n')
        text[--length] = '\0';
    const char *line = strrchr(text, '\n');
    return line ? line + 1 : text;
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
