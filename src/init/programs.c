/* programs.c - stdin, output and ends of programs. User code cannot make init wait: a program may
 * not read, print for ever, or leave children behind. */
#include "init/init.h"

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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { KILL_MS = 2000, BLOCKS_AFTER_END = 64, FORKED_FIRST = 3 };

/* After less than SMALL_OUTPUT bytes the next output is read OUTPUT_PAUSE_MS later, so that the
 * lines of a loop of prints are passed on together: init's processor time is charged to no sandbox.
 */
enum { SMALL_OUTPUT = 4096, OUTPUT_PAUSE_MS = 1 };

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

static void forget(int *fd)
{
    close_fd(fd);
    *fd = -1;
}

void write_input(struct sandbox *sandbox, struct program *program)
{
    ssize_t put = write(program->input, program->pending, program->waiting);
    if (put < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    struct agent_amount taken = { .bytes = put > 0 ? (uint64_t) put : program->waiting };
    if (put <= 0) { /* the program has closed its stdin: further input is discarded */
        program->waiting = 0;
        forget(&program->input);
    } else {
        program->waiting -= (uint32_t) put;
        memmove(program->pending, program->pending + put, program->waiting);
    }
    send_frame(sandbox, AGENT_CREDIT, 0, program->id, &taken, sizeof taken, NULL, 0);
    if (program->waiting == 0 && program->input_ends)
        forget(&program->input);
}

int feed_program(struct sandbox *sandbox, uint32_t id, const void *bytes, size_t size, error *err)
{
    struct program *program = program_of(sandbox, id);
    if (!program)
        return fail(err, ERR_NOT_FOUND, "process %u does not run", id);
    if (size > AGENT_WINDOW - program->waiting)
        return fail(err, ERR_PROTOCOL, "more input than was granted");
    if (program->input < 0) {
        struct agent_amount taken = { .bytes = size };
        send_frame(sandbox, AGENT_CREDIT, 0, id, &taken, sizeof taken, NULL, 0);
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

int signal_program(struct sandbox *sandbox, uint32_t id, const struct agent_signal *order,
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

int resize_terminal(struct sandbox *sandbox, uint32_t id, const struct agent_size *size, error *err)
{
    const struct program *program = program_of(sandbox, id);
    struct winsize wanted = { .ws_row = size->rows, .ws_col = size->columns };
    if (!program || !(program->flags & AGENT_START_TERMINAL))
        return fail(err, ERR_NOT_FOUND, "process %u has no terminal", id);
    if (ioctl(program->outputs[0], TIOCSWINSZ, &wanted) < 0)
        return fail_os(err, "resize the terminal");
    return 0;
}

bool output_may_pass(const struct program *program)
{
    return !(program->flags & AGENT_START_CREDIT) || program->credit > 0;
}

bool grant_output(struct sandbox *sandbox, const struct frame *in)
{
    struct program *program = program_of(sandbox, in->head.id);
    struct agent_amount more;
    memcpy(&more, in->payload, sizeof more);
    if (program && __builtin_add_overflow(program->credit, more.bytes, &program->credit))
        program->credit = UINT64_MAX;
    return program != NULL;
}

/* Sends one block of output. False: there is no more now. */
bool pass_output(struct sandbox *sandbox, struct program *program, unsigned stream)
{
    static char block[AGENT_PAYLOAD_MAX];
    int *from = &program->outputs[stream - 1];
    if (*from < 0)
        return false;
    bool by_credit = program->flags & AGENT_START_CREDIT;
    size_t max = by_credit && program->credit < sizeof block ? program->credit : sizeof block;
    if (max == 0)
        return false;
    ssize_t got = read(*from, block, max);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got <= 0) { /* EIO: the last process has closed the terminal */
        forget(from);
        return false;
    }
    send_frame(sandbox, AGENT_OUTPUT, stream, program->id, block, (size_t) got, NULL, 0);
    if (by_credit)
        program->credit -= (uint64_t) got;
    program->blocks_after_end += program->pid == 0;
    if (got < SMALL_OUTPUT)
        program->is_left_alone = deadline_in(OUTPUT_PAUSE_MS);
    return true;
}

/* Orphans become children of pid 1, which reaps them all, of any kind (__WALL, clone(2)): if it has
 * no child, no process is left. */
bool reap_programs(struct sandbox *sandbox)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG | __WALL);
        if (pid <= 0)
            return pid < 0 && errno == ECHILD;
        for_each(program, sandbox->programs)
            if (program->id != 0 && program->pid == pid) {
                program->pid = 0;
                program->status = status;
            }
    }
}

/* An interpreter whose code has ended only has to free its memory, which takes milliseconds. With
 * SIGKILL pending and one thread it cannot change a file any more, so init does not wait for it. */
static bool is_only_leaving(const struct sandbox *sandbox, const char *pid)
{
    char path[64];
    struct stat tasks;
    const struct program *interpreter = &sandbox->programs[0];
    if (!sandbox->code_has_ended || interpreter->id != AGENT_INTERPRETER ||
        strtol(pid, NULL, 10) != interpreter->pid)
        return false;
    (void) snprintf(path, sizeof path, "/proc/%.16s/task", pid);
    return stat(path, &tasks) < 0 || tasks.st_nlink <= 3; /* ".", "..", one thread */
}

/* Looks for other processes in the /proc of this namespace. */
static bool a_process_is_left(const struct sandbox *sandbox)
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
            return !sandbox->code_has_ended; /* not listed: hidden from init, or ended */
        for_each_listed(entry, entries, got) {
            if (entry->name[0] < '0' || entry->name[0] > '9' || strcmp(entry->name, "1") == 0)
                continue;
            if (!is_only_leaving(sandbox, entry->name))
                return true;
        }
    }
}

/* The newest process or thread id of this namespace; 0: not known. */
static long newest_id(const struct sandbox *sandbox)
{
    char text[96];
    ssize_t got = pread(sandbox->last_pid, text, sizeof text - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    const char *last = strrchr(text, ' ');
    return last ? strtol(last, NULL, 10) : 0;
}

/* Kills the interpreter whose code has ended; true if no other process is left. It avoids kill(-1),
 * which visits all processes of the host under a lock that blocks every fork. Process ids ascend,
 * and begin again at 300 after the last one (alloc_pid in kernel/pid.c). Init is 1, the zygote used
 * 2 to fork the interpreter, which is 3: while 3 is the newest id, it has made no process or
 * thread. A process with SIGKILL pending can make none (copy_process in kernel/fork.c), so the
 * newest id is read after the signal. Programs lack the capability to choose an id (clone3(2),
 * set_tid). */
static bool only_interpreter_was_left(const struct sandbox *sandbox)
{
    const struct program *interpreter = &sandbox->programs[0];
    return sandbox->code_has_ended && interpreter->id == AGENT_INTERPRETER &&
           interpreter->pid == FORKED_FIRST && kill(interpreter->pid, SIGKILL) == 0 &&
           newest_id(sandbox) == FORKED_FIRST;
}

/* kill(-1) signals every process of the namespace but init, in one pass under a lock of the kernel,
 * so that no fork escapes. A process in a system call may take a while to end. */
void stop_everything(struct sandbox *sandbox)
{
    for_each(program, sandbox->programs)
        program->credit = UINT64_MAX; /* report every end now */
    /* A zygote forks a session's interpreters, which become children of init a moment later. Test
     * builds may leave out the pid namespace that makes init the parent of all. */
    if (!sandbox->is_kept && getpid() == 1 &&
        (reap_programs(sandbox) || only_interpreter_was_left(sandbox)))
        return;
    deadline end = deadline_in(KILL_MS);
    while (kill(-1, SIGKILL) == 0 && !deadline_has_passed(end)) {
        (void) reap_programs(sandbox);
        if (!a_process_is_left(sandbox))
            break;
        struct timespec moment = { .tv_nsec = 200000 };
        (void) nanosleep(&moment, NULL);
    }
    (void) reap_programs(sandbox);
}

/* Sends what is still in the pipes of a program that has ended. A child that lives on could print
 * for ever, so only what is there now is read. */
void drain_output(struct sandbox *sandbox, struct program *program)
{
    for (unsigned stream = 1; stream <= 2; stream++)
        for (unsigned blocks = 0;
             blocks < BLOCKS_AFTER_END && pass_output(sandbox, program, stream); blocks++)
            ;
}

/* Is the end of a program reported later, since output waits for credit? Processes that it left
 * behind may print for ever, so the end waits for at most as much as a pipe holds. */
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
    struct agent_exited exited = {
        .exit_code = WIFEXITED(program->status) ? WEXITSTATUS(program->status) : -1,
        .signal = WIFSIGNALED(program->status) ? WTERMSIG(program->status) : 0,
    };
    forget(&program->input);
    forget(&program->outputs[0]);
    forget(&program->outputs[1]);
    forget(&program->control);
    forget(&program->listener);
    measure_scratch(sandbox);
    tell_usage(sandbox);
    send_frame(sandbox, AGENT_EXITED, 0, program->id, &exited, sizeof exited, NULL, 0);
    sandbox->conclusion.is_due |= program->id == AGENT_INTERPRETER;
    program->id = 0;
    program->waiting = 0;
}

/* Reports ends of programs, in order. When the main one ends, all others are ended first. */
void finish_programs(struct sandbox *sandbox)
{
    for_each(program, sandbox->programs)
        if (program->id != 0 && program->pid == 0 && program->is_main) {
            (void) look_now(sandbox);
            stop_everything(sandbox);
        }
    for_each(program, sandbox->programs) {
        if (program->id == 0 || program->pid != 0)
            continue;
        hear_interpreter_out(sandbox, program);
        drain_output(sandbox, program);
        if (!output_waits(program))
            tell_end(sandbox, program);
    }
}
