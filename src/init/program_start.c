/* program_start.c - starts a program with pipes or a terminal, and waits until execve(2) has
 * succeeded or failed. */
#include "init/init.h"
#include "init/walls.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

enum {
    EXEC_MS = 30000,
    CONTROL = 3, /* an interpreter's own end */
    IMAGE = 4,   /* what glovebox-restore reads */
};

/* The descriptors of a new program: init's and its own. */
struct ends {
    int ours[3], theirs[3];
    int control[2]; /* ours and its, of an interpreter */
    int image;      /* for glovebox-restore, else -1; borrowed */
};

static void close_ends(struct ends *ends)
{
    for (unsigned i = 0; i < 3; i++) {
        if (ends->theirs[i] >= 0 && (i == 0 || ends->theirs[i] != ends->theirs[0]))
            (void) close(ends->theirs[i]);
        if (ends->ours[i] >= 0 && (i == 0 || ends->ours[i] != ends->ours[0]))
            (void) close(ends->ours[i]);
    }
    close_fd(&ends->control[0]);
    close_fd(&ends->control[1]);
}

static int open_control(const struct agent_start *start, struct ends *ends, error *err)
{
    bool is_restored = start->flags & AGENT_START_RESTORE;
    ends->control[0] = ends->control[1] = -1;
    if (!is_restored)
        ends->image = -1;
    if (is_restored && ends->image < 0)
        return fail(err, ERR_PROTOCOL, "an image needs a pipe");
    if (!(start->flags & (AGENT_START_CELLS | AGENT_START_RESTORE)))
        return 0;
    int type = is_restored ? SOCK_SEQPACKET : SOCK_STREAM;
    if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends->control) < 0)
        return fail_os(err, "make a socket for an interpreter");
    return 0;
}

static int open_terminal(const struct agent_start *start, struct ends *ends, error *err)
{
    int number;
    struct winsize size = { .ws_row = start->rows, .ws_col = start->columns };
    ends->ours[0] = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    int unlock = 0;
    if (ends->ours[0] < 0 || ioctl(ends->ours[0], TIOCSPTLCK, &unlock) < 0 ||
        ioctl(ends->ours[0], TIOCGPTN, &number) < 0)
        return fail_os(err, "open a terminal");
    ends->theirs[0] = ioctl(ends->ours[0], TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (ends->theirs[0] < 0)
        return fail_os(err, "open the terminal's other side");
    (void) ioctl(ends->ours[0], TIOCSWINSZ, &size);
    ends->theirs[1] = ends->theirs[2] = ends->theirs[0];
    ends->ours[1] = fcntl(ends->ours[0], F_DUPFD_CLOEXEC, 3);
    return 0;
}

static int open_pipes(const struct agent_start *start, struct ends *ends, error *err)
{
    int pair[2];
    for (unsigned i = 1; i < 3; i++) {
        if (pipe2(pair, O_CLOEXEC) < 0)
            return fail_os(err, "make a pipe");
        ends->ours[i] = pair[0];
        ends->theirs[i] = pair[1];
        (void) fcntl(pair[0], F_SETFL, O_NONBLOCK);
    }
    if (start->flags & AGENT_START_STDIN_PIPE) {
        if (pipe2(pair, O_CLOEXEC) < 0)
            return fail_os(err, "make a pipe");
        ends->theirs[0] = pair[0];
        ends->ours[0] = pair[1];
        (void) fcntl(pair[1], F_SETFL, O_NONBLOCK);
        return 0;
    }
    bool from_file = start->flags & AGENT_START_STDIN_FILE;
    ends->theirs[0] =
        open(from_file ? "/run/stdin" : "/dev/null", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return ends->theirs[0] < 0 ? fail_os(err, "open the input") : 0;
}

/* As execvp(3), but with the PATH of the new environment. */
static void execute(const struct command *command)
{
    const char *name = command->arguments[0];
    const char *path = "/usr/local/bin:/usr/bin:/bin";
    if (strchr(name, '/')) {
        (void) execve(name, command->arguments, command->variables);
        return;
    }
    for (unsigned i = 0; command->variables[i]; i++)
        if (strncmp(command->variables[i], "PATH=", 5) == 0)
            path = command->variables[i] + 5;
    int seen = ENOENT;
    for (const char *part = path; *part;) {
        char whole[AGENT_PATH_MAX + 1];
        size_t length = strcspn(part, ":");
        if (length + strlen(name) + 2 < sizeof whole) {
            memcpy(whole, part, length);
            whole[length] = '/';
            memcpy(whole + length + 1, name, strlen(name) + 1);
            (void) execve(whole, command->arguments, command->variables);
            if (errno != ENOENT && errno != ENOTDIR)
                seen = errno;
        }
        part += length + (part[length] == ':');
    }
    errno = seen;
}

/* Walls of programs that init does not have: see limit_use() and limit_paths() in recipe.c. */
static int raise_own_walls(const struct sandbox *sandbox, error *err)
{
    int abi;
    if (sandbox->spec.groups == 0 && (sandbox->walls & (1ULL << WALL_landlock)) &&
        limit_files(sandbox->spec.network == SPAWN_NETWORK_LOOPBACK, &abi, err) < 0)
        return -1;
    return sandbox->walls & (1ULL << WALL_rlimits)
               ? limit_use_to(sandbox, sandbox->spec.open_files, err)
               : 0;
}

static int first_not_given(const struct ends *ends)
{
    if (ends->image >= 0)
        return IMAGE + 1;
    return ends->control[1] >= 0 ? CONTROL + 1 : CONTROL;
}

/* In the new process. It writes a failure to the pipe and leaves by _exit(2). */
_Noreturn static void become_program(const struct sandbox *sandbox, const struct agent_start *start,
                                     const struct command *command, const struct ends *ends,
                                     int failure)
{
    error err = { 0 };
    sigset_t none;
    (void) sigemptyset(&none);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    (void) sigprocmask(SIG_SETMASK, &none, NULL);
    (void) signal(SIGPIPE, SIG_DFL);
    (void) setsid();
    if (start->flags & AGENT_START_TERMINAL)
        (void) ioctl(ends->theirs[0], TIOCSCTTY, 0);
    if (join_groups(sandbox->procs, sandbox->spec.groups, &err) < 0 ||
        raise_own_walls(sandbox, &err) < 0)
        goto failed;
    for (int i = 0; i < 3; i++)
        if (dup2(ends->theirs[i], i) < 0) {
            (void) fail_os(&err, "connect descriptor %d", i);
            goto failed;
        }
    if (chdir(command->folder) < 0) {
        (void) fail_os(&err, "enter folder '%s'", command->folder);
        goto failed;
    }
    if ((ends->control[1] >= 0 && dup2(ends->control[1], CONTROL) < 0) ||
        (ends->image >= 0 && dup2(ends->image, IMAGE) < 0)) {
        (void) fail_os(&err, "connect the control socket or the image");
        goto failed;
    }
    /* Every descriptor of init is close-on-exec; this closes one that is not, by mistake. */
    if (syscall(SYS_close_range, first_not_given(ends), ~0U, CLOSE_RANGE_CLOEXEC) < 0 &&
        errno != ENOSYS) {
        (void) fail_os(&err, "close descriptors");
        goto failed;
    }
    execute(command);
    (void) fail_os(&err,
                   errno == ENOENT && !strchr(command->arguments[0], '/')
                       ? "execute '%s' (this template has none; its operator can add it)"
                       : "execute '%s'",
                   command->arguments[0]);
    err.code = ERR_NOT_EXECUTABLE;
failed:
    (void) !write(failure, &err, sizeof err);
    _exit(127);
}

/* A control group that is frozen or out of memory can stop a new process: the wait is bounded. */
static int wait_for_word(int failure_read)
{
    struct pollfd word = { .fd = failure_read, .events = POLLIN };
    deadline end = deadline_in(EXEC_MS);
    int ready;
    do
        ready = poll(&word, 1, (int) deadline_left_ms(end));
    while (ready < 0 && errno == EINTR);
    return ready;
}

/* Forks and waits until the new program has been executed or has failed. */
static pid_t fork_program(const struct sandbox *sandbox, const struct agent_start *start,
                          const struct command *command, const struct ends *ends, error *err)
{
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) < 0) {
        (void) fail_os(err, "make a pipe");
        return -1;
    }
    auto_fd failure_read = pair[0], failure_write = pair[1];
    pid_t pid = fork();
    if (pid < 0) {
        (void) fail_os(err, "fork");
        return -1;
    }
    if (pid == 0)
        become_program(sandbox, start, command, ends, failure_write);
    close_fd(&failure_write);
    failure_write = -1;
    error cause = { 0 };
    int ready = wait_for_word(failure_read);
    ssize_t got = ready > 0 ? read(failure_read, &cause, sizeof cause) : -1;
    if (got == 0)
        return pid;
    if (ready > 0)
        (void) waitpid(pid, NULL, 0);
    else { /* reap_programs() reaps it when it has died, however long that takes */
        (void) kill(pid, SIGKILL);
        (void) fail(&cause, ERR_UNAVAILABLE, "the program was not executed within %d s",
                    EXEC_MS / 1000);
    }
    *err = cause;
    err->text[sizeof err->text - 1] = '\0';
    return -1;
}

int start_program(struct sandbox *sandbox, const struct frame *in, error *err)
{
    struct agent_start start;
    struct command command;
    struct ends ends = { { -1, -1, -1 }, { -1, -1, -1 }, { -1, -1 }, in->fd };
    uint32_t id = in->head.id;
    memcpy(&start, in->payload, sizeof start);
    if (read_command(&start, (const char *) in->payload + sizeof start,
                     (const char *) in->payload + in->head.size, &command, err) < 0)
        return -1;
    struct program *program = free_place(sandbox);
    if (!program || id == 0 || program_of(sandbox, id))
        return fail(err, ERR_BUSY,
                    "process %u cannot be started: %d at most, each with its own number", id,
                    AGENT_PROCESSES_MAX);
    int opened = start.flags & AGENT_START_TERMINAL ? open_terminal(&start, &ends, err)
                                                    : open_pipes(&start, &ends, err);
    if (opened == 0)
        opened = open_control(&start, &ends, err);
    pid_t pid = opened < 0 ? -1 : fork_program(sandbox, &start, &command, &ends, err);
    if (pid < 0) {
        close_ends(&ends);
        return -1;
    }
    for (unsigned i = 0; i < 3; i++)
        if (i == 0 || ends.theirs[i] != ends.theirs[0])
            (void) close(ends.theirs[i]);
    close_fd(&ends.control[1]);

    program->id = id;
    program->pid = pid;
    program->flags = start.flags;
    program->is_main = start.flags & AGENT_START_MAIN;
    program->input = ends.ours[0];
    program->outputs[0] = ends.ours[1];
    program->outputs[1] = ends.ours[2];
    program->control = ends.control[0];
    program->listener = -1;
    program->is_driver = start.flags & AGENT_START_CELLS;
    program->has_spoken = true; /* it has no filter of its own to report */
    program->is_busy = false;
    program->said = 0;
    program->input_ends = false;
    program->waiting = 0;
    program->credit = AGENT_START_GRANT;
    program->blocks_after_end = 0;
    struct agent_started started = { .pid = (uint32_t) pid };
    send_frame(sandbox, AGENT_STARTED, 0, id, &started, sizeof started, NULL, 0);
    return 0;
}
