/* fail_call.c - runs a command and lets exactly one system call fail, of the command or of anything
 * that it starts: fail_call N[:NAME] ERRNO REPORT COMMAND… The calls of all processes are counted
 * together, in the order in which they are made, from the command's first own instruction on; with
 * NAME, only openat(2) of that path is counted. The N-th is not carried out and answers ERRNO; with
 * N = 0 nothing fails. REPORT gets one line: the number of calls, and which call of which program
 * failed.
 *
 * Used by test_spawner_faults.py. ptrace(2) with PTRACE_GET_SYSCALL_INFO, Linux 5.3. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/reg.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ptrace.h>

enum { PROCESSES_MAX = 512 };

static struct process {
    pid_t pid;
    bool failing; /* its call was taken away; the answer follows */
} processes[PROCESSES_MAX];

static struct {
    unsigned long wanted, count;
    const char *path; /* count only openat(2) of this path; NULL: every call */
    long answer;
    bool counting;
    char what[128];
} plan;

/* The process, entered into the table when it is new. */
static struct process *process_of(pid_t pid, bool *ret_new)
{
    struct process *free_row = NULL;
    *ret_new = false;
    for (struct process *row = processes; row < processes + PROCESSES_MAX; row++) {
        if (row->pid == pid)
            return row;
        if (row->pid == 0 && !free_row)
            free_row = row;
    }
    if (!free_row) {
        (void) fputs("fail_call: too many processes\n", stderr);
        exit(2);
    }
    *free_row = (struct process){ .pid = pid };
    *ret_new = true;
    return free_row;
}

/* A process cannot go on after these: there is nothing that could handle a failure. close(2) is
 * spared because on Linux it closes whatever it answers, so a failure that leaves the descriptor
 * open is none. */
static bool is_spared(uint64_t call)
{
    return call == SYS_close || call == SYS_exit || call == SYS_exit_group ||
           call == SYS_rt_sigreturn || call == SYS_restart_syscall;
}

/* Whether the call counts. The path is read from the process's memory. */
static bool is_counted(pid_t pid, uint64_t call, uint64_t second_argument)
{
    if (!plan.path || is_spared(call))
        return !is_spared(call);
    char path[64] = "";
    struct iovec here = { path, sizeof path - 1 };
    struct iovec there = { (void *) (uintptr_t) second_argument, sizeof path - 1 };
    return call == SYS_openat && process_vm_readv(pid, &here, 1, &there, 1, 0) > 0 &&
           strcmp(path, plan.path) == 0;
}

static void describe(pid_t pid, uint64_t call)
{
    char path[64], name[32] = "?";
    (void) snprintf(path, sizeof path, "/proc/%d/comm", pid);
    FILE *file = fopen(path, "re");
    if (file && fgets(name, sizeof name, file))
        name[strcspn(name, "\n")] = '\0';
    if (file)
        (void) fclose(file);
    (void) snprintf(plan.what, sizeof plan.what, "call %llu of %s (%d)", (unsigned long long) call,
                    name, pid);
}

static void at_call(struct process *process)
{
    struct ptrace_syscall_info info;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, process->pid, sizeof info, &info) <= 0)
        return;
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY && plan.counting &&
        is_counted(process->pid, info.entry.nr, info.entry.args[1])) {
        if (++plan.count != plan.wanted)
            return;
        describe(process->pid, info.entry.nr);
        /* A harmless call in its place, since a seccomp filter reads the number after us,
         * Linux 4.8: ours ends a process that makes call -1, so the failure itself would never
         * arrive. */
        process->failing =
            ptrace(PTRACE_POKEUSER, process->pid, sizeof(long) * ORIG_RAX, (long) SYS_getpid) == 0;
    } else if (info.op == PTRACE_SYSCALL_INFO_EXIT && process->failing) {
        process->failing = false;
        (void) ptrace(PTRACE_POKEUSER, process->pid, sizeof(long) * RAX, -plan.answer);
    }
}

/* Gives the signal that the process shall get when it goes on. */
static int at_stop(struct process *process, int status, bool is_new)
{
    int signal_number = WSTOPSIG(status);
    int event = status >> 16;
    if (signal_number == (SIGTRAP | 0x80)) {
        at_call(process);
        return 0;
    }
    if (event == PTRACE_EVENT_EXEC)
        plan.counting = true;
    if (event != 0 || (signal_number == SIGSTOP && is_new))
        return 0;
    return signal_number;
}

static int follow(pid_t first)
{
    int result = 2, status;
    for (;;) {
        pid_t pid = waitpid(-1, &status, __WALL);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid < 0)
            return result;
        bool is_new;
        struct process *process = process_of(pid, &is_new);
        if (WIFSTOPPED(status)) {
            int signal_number = at_stop(process, status, is_new);
            (void) ptrace(PTRACE_SYSCALL, pid, 0, signal_number);
            continue;
        }
        process->pid = 0;
        if (pid == first)
            result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}

int main(int count, char **arguments)
{
    if (count < 5) {
        (void) fputs("usage: fail_call N[:NAME] ERRNO REPORT COMMAND…\n", stderr);
        return 2;
    }
    char *colon;
    plan.wanted = strtoul(arguments[1], &colon, 10);
    plan.path = *colon == ':' ? colon + 1 : NULL;
    plan.answer = strtol(arguments[2], NULL, 10);
    pid_t child = fork();
    if (child == 0) {
        (void) ptrace(PTRACE_TRACEME, 0, 0, 0);
        (void) raise(SIGSTOP);
        (void) execv(arguments[4], arguments + 4);
        _exit(127);
    }
    int status;
    bool is_new;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
        return 2;
    (void) process_of(child, &is_new);
    long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                   PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SETOPTIONS, child, 0, options) < 0 || ptrace(PTRACE_SYSCALL, child, 0, 0) < 0)
        return 2;
    int result = follow(child);
    FILE *report = fopen(arguments[3], "we");
    if (report) {
        (void) fprintf(report, "%lu %s\n", plan.count, plan.what);
        (void) fclose(report);
    }
    return result;
}
