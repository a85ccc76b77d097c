/* programs.c - starts programs with pipes or a terminal, feeds them, passes on what they print, and
 * tells how they end. What user code can do here is bounded: a program that does not read, does not
 * stop printing or leaves children behind costs init nothing but the loop. */
#include "init/init.h"
#include "init/walls.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/table.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

enum {
    EXEC_MS = 30000,
    KILL_MS = 2000,
    BLOCKS_AFTER_END = 64,
    CONTROL = 3, /* an interpreter's own end */
    IMAGE = 4,   /* what glovebox-restore reads */
};

struct program *program_of(struct sandbox *sandbox, uint32_t id)
{
    for_each(program, sandbox->programs)
        if (program->id == id && id != 0)
            return program;
    return NULL;
}

uint32_t programs_alive(const struct sandbox *sandbox)
{
    uint32_t alive = 0;
    for_each(program, sandbox->programs)
        alive += program->id != 0;
    return alive;
}

struct program *free_place(struct sandbox *sandbox)
{
    for_each(program, sandbox->programs)
        if (program->id == 0)
            return program;
    return NULL;
}

/* The three descriptors of a program, ours and its. */
struct ends {
    int ours[3];
    int theirs[3];
    int control[2]; /* ours and its, of an interpreter */
    int image;      /* of one that is restored, else -1; borrowed */
};

static void close_ends(struct ends *ends)
{
    for (unsigned i = 0; i < 3; i++) {
        if (ends->theirs[i] >= 0 && (i == 0 || ends->theirs[i] != ends->theirs[0]))
            (void) close(ends->theirs[i]);
        if (ends->ours[i] >= 0 && (i == 0 || ends->ours[i] != ends->ours[0]))
            (void) close(ends->ours[i]);
    }
    for (unsigned i = 0; i < 2; i++)
        if (ends->control[i] >= 0)
            (void) close(ends->control[i]);
}

static int open_control(const struct inside_start *start, struct ends *ends, error *err)
{
    bool is_restored = start->flags & INSIDE_START_RESTORE;
    ends->control[0] = ends->control[1] = -1;
    if (!is_restored)
        ends->image = -1;
    if (is_restored && ends->image < 0)
        return fail(err, ERR_PROTOCOL, "an image needs a pipe");
    if (!(start->flags & (INSIDE_START_CELLS | INSIDE_START_RESTORE)))
        return 0;
    int type = is_restored ? SOCK_SEQPACKET : SOCK_STREAM;
    if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends->control) < 0)
        return fail_os(err, "make a socket for an interpreter");
    return 0;
}

static int open_terminal(const struct inside_start *start, struct ends *ends, error *err)
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

static int open_pipes(const struct inside_start *start, struct ends *ends, error *err)
{
    int pair[2];
    for (unsigned i = 1; i < 3; i++) {
        if (pipe2(pair, O_CLOEXEC) < 0)
            return fail_os(err, "make a pipe");
        ends->ours[i] = pair[0];
        ends->theirs[i] = pair[1];
        (void) fcntl(pair[0], F_SETFL, O_NONBLOCK);
    }
    if (start->flags & INSIDE_START_STDIN_PIPE) {
        if (pipe2(pair, O_CLOEXEC) < 0)
            return fail_os(err, "make a pipe");
        ends->theirs[0] = pair[0];
        ends->ours[0] = pair[1];
        (void) fcntl(pair[1], F_SETFL, O_NONBLOCK);
        return 0;
    }
    bool from_file = start->flags & INSIDE_START_STDIN_FILE;
    ends->theirs[0] =
        open(from_file ? "/run/stdin" : "/dev/null", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (ends->theirs[0] < 0)
        return fail_os(err, "open the input");
    return 0;
}

/* As execvp(3), with the PATH of the new environment: a name without a slash is looked for. */
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
        char whole[INSIDE_PATH_MOST + 1];
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

static int first_not_given(const struct ends *ends)
{
    if (ends->image >= 0)
        return IMAGE + 1;
    return ends->control[1] >= 0 ? CONTROL + 1 : CONTROL;
}

/* In the new process. Every way out is _exit; the failure goes through the pipe. */
_Noreturn static void become_program(const struct sandbox *sandbox,
                                     const struct inside_start *start,
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
    if (start->flags & INSIDE_START_TERMINAL)
        (void) ioctl(ends->theirs[0], TIOCSCTTY, 0);
    if (join_groups(sandbox->procs, sandbox->spec.groups, &err) < 0)
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
    if (ends->control[1] >= 0 && dup2(ends->control[1], CONTROL) < 0) {
        (void) fail_os(&err, "connect the control socket");
        goto failed;
    }
    if (ends->image >= 0 && dup2(ends->image, IMAGE) < 0) {
        (void) fail_os(&err, "connect the image");
        goto failed;
    }
    /* Everything of ours is close-on-exec; what is not would be a mistake, and goes as well. */
    if (syscall(SYS_close_range, first_not_given(ends), ~0U, CLOSE_RANGE_CLOEXEC) < 0 &&
        errno != ENOSYS)
        goto failed;
    execute(command);
    (void) fail_os(&err, "execute '%s'", command->arguments[0]);
    err.code = ERR_NOT_EXECUTABLE;
failed:
    (void) !write(failure, &err, sizeof err);
    _exit(127);
}

/* A group that is frozen or out of memory can hold a newborn back, but not us for ever. */
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

/* Forks and waits until the new program has been executed, or has said why not. */
static pid_t fork_program(const struct sandbox *sandbox, const struct inside_start *start,
                          const struct command *command, const struct ends *ends, error *err)
{
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) < 0) {
        (void) fail_os(err, "make a pipe");
        return -1;
    }
    auto_fd failure_read = pair[0];
    auto_fd failure_write = pair[1];
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
    else { /* it is reaped like any orphan when it has died: that may take as long as it likes */
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
    struct inside_start start;
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
                    INSIDE_PROCESSES_MOST);
    int opened = start.flags & INSIDE_START_TERMINAL ? open_terminal(&start, &ends, err)
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
    if (ends.control[1] >= 0)
        (void) close(ends.control[1]);

    program->id = id;
    program->pid = pid;
    program->flags = start.flags;
    program->is_main = start.flags & INSIDE_START_MAIN;
    program->input = ends.ours[0];
    program->outputs[0] = ends.ours[1];
    program->outputs[1] = ends.ours[2];
    program->control = ends.control[0];
    program->listener = -1;
    program->is_driver = start.flags & INSIDE_START_CELLS;
    program->has_spoken = true; /* no filter of its own is to be reported */
    program->is_busy = false;
    program->said = 0;
    program->input_ends = false;
    program->waiting = 0;
    program->credit = INSIDE_START_GRANT;
    program->blocks_after_end = 0;
    struct inside_started started = { .pid = (uint32_t) pid };
    send_frame(sandbox, INSIDE_STARTED, 0, id, &started, sizeof started, NULL, 0);
    return 0;
}

static void forget(int *fd)
{
    if (*fd >= 0)
        (void) close(*fd);
    *fd = -1;
}

void write_input(struct sandbox *sandbox, struct program *program)
{
    ssize_t put = write(program->input, program->pending, program->waiting);
    if (put < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    struct inside_amount taken = { .bytes = put > 0 ? (uint64_t) put : program->waiting };
    if (put <= 0) { /* nobody reads any more: what comes is taken and thrown away */
        program->waiting = 0;
        forget(&program->input);
    } else {
        program->waiting -= (uint32_t) put;
        memmove(program->pending, program->pending + put, program->waiting);
    }
    send_frame(sandbox, INSIDE_CREDIT, 0, program->id, &taken, sizeof taken, NULL, 0);
    if (program->waiting == 0 && program->input_ends)
        forget(&program->input);
}

int feed_program(struct sandbox *sandbox, uint32_t id, const void *bytes, size_t size, error *err)
{
    struct program *program = program_of(sandbox, id);
    if (!program)
        return fail(err, ERR_NOT_FOUND, "process %u does not run", id);
    if (size > INSIDE_WINDOW - program->waiting)
        return fail(err, ERR_PROTOCOL, "more input than was granted");
    if (program->input < 0) {
        struct inside_amount taken = { .bytes = size };
        send_frame(sandbox, INSIDE_CREDIT, 0, id, &taken, sizeof taken, NULL, 0);
        return 0;
    }
    memcpy(program->pending + program->waiting, bytes, size);
    program->waiting += (uint32_t) size;
    return 0;
}

void end_input(struct sandbox *sandbox, uint32_t id)
{
    struct program *program = program_of(sandbox, id);
    if (!program)
        return;
    program->input_ends = true;
    if (program->waiting == 0)
        forget(&program->input);
}

int signal_program(struct sandbox *sandbox, uint32_t id, const struct inside_signal *order,
                   error *err)
{
    pid_t whom = -1;
    if (id != 0) {
        const struct program *program = program_of(sandbox, id);
        if (!program || program->pid <= 0)
            return fail(err, ERR_NOT_FOUND, "process %u does not run", id);
        whom = order->whole_group ? -program->pid : program->pid;
    }
    if (order->number == 0 || order->number > 64)
        return fail(err, ERR_BAD_REQUEST, "signal %u does not exist", order->number);
    if (kill(whom, (int) order->number) < 0 && errno != ESRCH)
        return fail_os(err, "send signal %u", order->number);
    return 0;
}

int resize_terminal(struct sandbox *sandbox, uint32_t id, const struct inside_size *size,
                    error *err)
{
    const struct program *program = program_of(sandbox, id);
    struct winsize wanted = { .ws_row = size->rows, .ws_col = size->columns };
    if (!program || !(program->flags & INSIDE_START_TERMINAL))
        return fail(err, ERR_NOT_FOUND, "process %u has no terminal", id);
    if (ioctl(program->outputs[0], TIOCSWINSZ, &wanted) < 0)
        return fail_os(err, "resize the terminal");
    return 0;
}

bool output_may_pass(const struct program *program)
{
    return !(program->flags & INSIDE_START_CREDIT) || program->credit > 0;
}

bool grant_output(struct sandbox *sandbox, const struct frame *in)
{
    struct program *program = program_of(sandbox, in->head.id);
    struct inside_amount more;
    memcpy(&more, in->payload, sizeof more);
    if (program && __builtin_add_overflow(program->credit, more.bytes, &program->credit))
        program->credit = UINT64_MAX;
    return program != NULL;
}

/* Passes on one block. False when there is nothing more now. */
bool pass_output(struct sandbox *sandbox, struct program *program, unsigned stream)
{
    static char block[INSIDE_PAYLOAD_MOST];
    int *from = &program->outputs[stream - 1];
    if (*from < 0)
        return false;
    bool by_credit = program->flags & INSIDE_START_CREDIT;
    size_t most = by_credit && program->credit < sizeof block ? program->credit : sizeof block;
    if (most == 0)
        return false;
    ssize_t got = read(*from, block, most);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got <= 0) { /* EIO: the last one has closed the terminal */
        forget(from);
        return false;
    }
    send_frame(sandbox, INSIDE_OUTPUT, stream, program->id, block, (size_t) got, NULL, 0);
    if (by_credit)
        program->credit -= (uint64_t) got;
    program->blocks_after_end += program->pid == 0;
    return true;
}

/* Everybody inside is a child of ours in the end: pid 1 reaps whatever it finds. */
void reap_programs(struct sandbox *sandbox)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid <= 0)
            return;
        for_each(program, sandbox->programs)
            if (program->id != 0 && program->pid == pid) {
                program->pid = 0;
                program->status = status;
            }
    }
}

/* An interpreter whose code has ended has nothing left to do but to give back its memory, which
 * takes milliseconds: with SIGKILL pending and one thread it changes no file any more, and is not
 * waited for. */
static bool is_only_leaving(const struct sandbox *sandbox, const char *pid)
{
    char path[64];
    struct stat tasks;
    const struct program *interpreter = &sandbox->programs[0];
    if (!sandbox->code_has_ended || interpreter->id != INSIDE_INTERPRETER ||
        strtol(pid, NULL, 10) != interpreter->pid)
        return false;
    (void) snprintf(path, sizeof path, "/proc/%.16s/task", pid);
    return stat(path, &tasks) < 0 || tasks.st_nlink <= 3; /* ".", "..", one thread */
}

/* Looks for processes beside us; /proc of this namespace holds nothing else. */
static bool somebody_is_left(const struct sandbox *sandbox)
{
    _Alignas(struct listed) char entries[2048];
    if (kill(-1, 0) < 0)
        return false;
    auto_fd processes = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (;;) {
        long got = processes < 0 ? -1 : syscall(SYS_getdents64, processes, entries, sizeof entries);
        if (got < 0)
            return true;
        if (got == 0)
            return !sandbox->code_has_ended; /* what is not listed is hidden from us, or gone */
        for (long at = 0; at < got;) {
            const struct listed *entry = (const struct listed *) (entries + at);
            at += entry->length;
            if (entry->name[0] < '0' || entry->name[0] > '9' || strcmp(entry->name, "1") == 0)
                continue;
            if (!is_only_leaving(sandbox, entry->name))
                return true;
        }
    }
}

/* kill(-1) reaches every process of the namespace but us, in one pass under the kernel's own lock,
 * so that no fork slips through. A process that the kernel holds may need a moment. */
void stop_everything(struct sandbox *sandbox)
{
    for_each(program, sandbox->programs)
        program->credit = UINT64_MAX; /* all ends are told now */
    deadline end = deadline_in(KILL_MS);
    while (kill(-1, SIGKILL) == 0 && !deadline_has_passed(end)) {
        reap_programs(sandbox);
        if (!somebody_is_left(sandbox))
            break;
        struct timespec moment = { .tv_nsec = 200000 };
        (void) nanosleep(&moment, NULL);
    }
    reap_programs(sandbox);
}

/* What is still in the pipes of a program that has ended. With everybody dead this ends by itself;
 * a child that lives on could print for ever, so only what is there now is taken. */
void drain_output(struct sandbox *sandbox, struct program *program)
{
    for (unsigned stream = 1; stream <= 2; stream++)
        for (unsigned blocks = 0;
             blocks < BLOCKS_AFTER_END && pass_output(sandbox, program, stream); blocks++)
            ;
}

/* Whether the end of a program is told later, since what it printed has not been asked for yet.
 * What it left behind may print for ever: no more is waited for than a pipe can hold. */
static bool output_waits(const struct program *program)
{
    for (unsigned i = 0; i < 2; i++) {
        struct pollfd waiting = { .fd = program->outputs[i], .events = POLLIN };
        if (program->outputs[i] >= 0 && !output_may_pass(program) &&
            program->blocks_after_end < BLOCKS_AFTER_END && poll(&waiting, 1, 0) > 0 &&
            (waiting.revents & POLLIN))
            return true;
    }
    return false;
}

static void tell_end(struct sandbox *sandbox, struct program *program)
{
    struct inside_exited exited = {
        .exit_code = WIFEXITED(program->status) ? WEXITSTATUS(program->status) : -1,
        .signal = WIFSIGNALED(program->status) ? WTERMSIG(program->status) : 0,
    };
    forget(&program->input);
    forget(&program->outputs[0]);
    forget(&program->outputs[1]);
    forget(&program->control);
    forget(&program->listener);
    measure_scratch(sandbox);
    send_frame(sandbox, INSIDE_EXITED, 0, program->id, &exited, sizeof exited, NULL, 0);
    sandbox->conclusion.is_due |= program->id == INSIDE_INTERPRETER;
    program->id = 0;
    program->waiting = 0;
}

/* Ends of programs, in order: the main one takes all others along before its own end is told. */
void finish_programs(struct sandbox *sandbox)
{
    for_each(program, sandbox->programs)
        if (program->id != 0 && program->pid == 0 && program->is_main)
            stop_everything(sandbox);
    for_each(program, sandbox->programs) {
        if (program->id == 0 || program->pid != 0)
            continue;
        hear_interpreter_out(sandbox, program);
        drain_output(sandbox, program);
        if (!output_waits(program))
            tell_end(sandbox, program);
    }
}
