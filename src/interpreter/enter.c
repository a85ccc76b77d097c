/* enter.c - the steps by which a forked interpreter enters its sandbox.
 *
 * The walls are those of any program that init starts (init/walls.h): the same source, linked into
 * both. A program inherits the namespaces of init; the interpreter has to join them. */
#include "interpreter/enter.h"

#include "base/cleanup.h"
#include "base/read_at.h"
#include "base/table.h"
#include "contract/agent.h"
#include "init/walls.h"
#include "model/ids.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* All steps have one signature, and some do not use all parameters. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* The number of the control socket: not 3, which programs expect for their first file, and within
 * the 64 descriptors for which the kernel needs no further table. */
enum { CONTROL_HIGH = 63 };

struct entry {
    const struct zygote_fork *order;
    const int *fds;
    const struct filter *filter;
    int control, listener;
};

int filter_read(int memory, struct filter *filter, error *err)
{
    struct stat status;
    if (fstat(memory, &status) < 0)
        return fail_os(err, "look at the filter");
    const size_t one = sizeof filter->code[0];
    if (status.st_size <= 0 || (size_t) status.st_size % one != 0 ||
        (size_t) status.st_size > sizeof filter->code)
        return fail(err, ERR_PROTOCOL, "a filter cannot have %lld bytes",
                    (long long) status.st_size);
    size_t size = (size_t) status.st_size;
    if (pread(memory, filter->code, size, 0) != (ssize_t) size)
        return fail_os(err, "read the filter");
    filter->length = (unsigned short) (size / one);
    return 0;
}

/* First of all, so that the limits of the sandbox hold for every later step. */
static int join_sandbox_groups(struct entry *entry, error *err)
{
    return join_groups(entry->fds + ZYGOTE_FDS, entry->order->groups, err);
}

static bool is_disabled(const struct zygote_fork *order, int wall)
{
#ifdef GLOVEBOX_DISABLE_WALL
    return wall >= 0 && (order->disabled_walls & (UINT64_C(1) << wall));
#else
    return false;
#endif
}

/* After the ids are taken /proc/self is no longer its own (proc(5)), so this comes early. */
static int raise_oom_score(struct entry *entry, error *err)
{
    return set_oom_score() < 0 ? fail_os(err, "write oom_score_adj") : 0;
}

/* All but the pid namespace, in which it was forked. The kernel joins the user namespace first,
 * whose capabilities allow the others (setns(2)). */
static int join_namespaces(struct entry *entry, error *err)
{
    int flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET;
    if (is_disabled(entry->order, WALL_userns))
        flags &= ~CLONE_NEWUSER; /* the sandbox has no user namespace of its own */
    if (setns(entry->fds[ZYGOTE_FD_INIT], flags) < 0)
        return fail_os(err, "join the namespaces of the sandbox");
    return setsid() < 0 ? fail_os(err, "leave the session of the zygote") : 0;
}

static int own_group_view(struct entry *entry, error *err)
{
    return unshare(CLONE_NEWCGROUP) < 0 ? fail_os(err, "make a view of control groups") : 0;
}

static int take_descriptors(struct entry *entry, error *err)
{
    static const enum zygote_fd standard[] = { ZYGOTE_FD_STDIN, ZYGOTE_FD_STDOUT,
                                               ZYGOTE_FD_STDERR };
    unsigned high =
        entry->order->open_files > CONTROL_HIGH ? CONTROL_HIGH : entry->order->open_files - 1;
    int control = fcntl(entry->fds[ZYGOTE_FD_CONTROL], F_DUPFD_CLOEXEC, CONTROL_HIGH);
    if (control < 0)
        return fail_os(err, "keep the control socket");
    for (int i = 0; i < 3; i++)
        if (dup2(entry->fds[standard[i]], i) < 0)
            return fail_os(err, "put descriptor %d in place", i);
    if (dup3(control, (int) high, O_CLOEXEC) < 0 && control != (int) high)
        return fail_os(err, "put the control socket in place");
    entry->control = (int) high;
    if (is_disabled(entry->order, WALL_descriptors))
        return 0;
    if (syscall(SYS_close_range, 3, high - 1, 0) < 0 ||
        syscall(SYS_close_range, high + 1, ~0U, 0) < 0)
        return fail_os(err, "close the zygote's descriptors");
    return 0;
}

static int raise_rlimits(struct entry *entry, error *err)
{
    const struct resource_limits limits = { .open_files = entry->order->open_files,
                                            .processes = entry->order->processes,
                                            .disk_bytes = entry->order->disk_bytes };
    return limit_resources(&limits, err);
}

static int take_inside_id(struct entry *entry, error *err)
{
    return take_id(AGENT_ID, err);
}

static int raise_no_capabilities(struct entry *entry, error *err)
{
    return drop_privileges(err);
}

static int raise_no_new_privs(struct entry *entry, error *err)
{
    return set_no_new_privs(err);
}

static int raise_landlock(struct entry *entry, error *err)
{
    int abi; /* init has reported it for the whole sandbox */
    return limit_files(entry->order->has_loopback != 0, &abi, err);
}

static int raise_seccomp(struct entry *entry, error *err)
{
    return limit_syscalls(entry->filter->code, entry->filter->length, &entry->listener, err);
}

/* Checks the result of all steps in /proc/PID/status (proc(5)). */
static int check_standing(struct entry *entry, error *err)
{
    static const struct {
        int wall;
        const char *line;
    } facts[] = {
        { WALL_no_capabilities, "\nCapInh:\t0000000000000000\n" },
        { WALL_no_capabilities, "\nCapPrm:\t0000000000000000\n" },
        { WALL_no_capabilities, "\nCapEff:\t0000000000000000\n" },
        { WALL_no_capabilities, "\nCapBnd:\t0000000000000000\n" },
        { WALL_no_capabilities, "\nCapAmb:\t0000000000000000\n" },
        { WALL_no_new_privs, "\nNoNewPrivs:\t1\n" },
        { WALL_seccomp, "\nSeccomp:\t2\n" },
    };
    char status[4096];
    if (read_text_at(AT_FDCWD, "/proc/self/status", status, sizeof status) <= 0)
        return fail_os(err, "read own status");
    for_each(fact, facts)
        if (!is_disabled(entry->order, fact->wall) && !strstr(status, fact->line))
            return fail(err, ERR_UNAVAILABLE, "own status does not say '%.*s'",
                        (int) strcspn(fact->line + 1, "\n"), fact->line + 1);
    return 0;
}

/* A change of ids clears the dumpable flag, after which a process cannot read even its own
 * /proc/self/fd. Nothing is left to protect, so the flag is set, as execve(2) would have done
 * (prctl(2), PR_SET_DUMPABLE). */
static int become_ordinary(struct entry *entry, error *err)
{
    (void) umask(022);
    return prctl(PR_SET_DUMPABLE, 1) < 0 ? fail_os(err, "become dumpable") : 0;
}

/* In order; a step may rely on every step above it, and on none below. */
/* clang-format off */
static const struct step {
    const char *name;
    int wall; /* that it raises, -1 if none: test builds can leave walls out */
    int (*take)(struct entry *, error *);
} recipe[] = {
    { "join control groups", -1,                   join_sandbox_groups   },
    { "oom score",           WALL_oom_score,       raise_oom_score       },
    { "join namespaces",     -1,                   join_namespaces       },
    { "group view",          WALL_cgroupns,        own_group_view        },
    { "descriptors",         -1,                   take_descriptors      },
    { "rlimits",             WALL_rlimits,         raise_rlimits         },
    { "take id",             WALL_userns,          take_inside_id        },
    { "capabilities",        WALL_no_capabilities, raise_no_capabilities },
    { "no_new_privs",        WALL_no_new_privs,    raise_no_new_privs    },
    { "landlock",            WALL_landlock,        raise_landlock        },
    { "seccomp",             WALL_seccomp,         raise_seccomp         },
    { "check",               -1,                   check_standing        },
    { "become ordinary",     -1,                   become_ordinary       },
};
/* clang-format on */

static int take_steps(struct entry *entry, error *err)
{
    for_each(step, recipe) {
        if (is_disabled(entry->order, step->wall))
            continue;
        if (step->take(entry, err) < 0)
            return under(err, "%s", step->name);
    }
    return 0;
}

/* Reports the outcome to init, with the listener of the filter. */
static int report(const struct entry *entry, const error *outcome)
{
    struct agent_interpreter_ready ready = { .pid = (uint32_t) getpid() };
    size_t length = 0;
    if (outcome->code != ERR_NONE) {
        ready.os = outcome->os ? outcome->os : EPROTO;
        length = strnlen(outcome->text, sizeof outcome->text);
    }
    struct agent_frame frame = { .size = (uint32_t) (sizeof ready + length),
                                 .kind = AGENT_INTERPRETER_READY };
    struct iovec parts[] = { { &frame, sizeof frame },
                             { &ready, sizeof ready },
                             { (void *) (uintptr_t) outcome->text, length } };
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } rights = { 0 };
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = COUNT_OF(parts) };
    if (entry->listener >= 0) {
        message.msg_control = rights.space;
        message.msg_controllen = sizeof rights.space;
        rights.header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
                                          .cmsg_type = SCM_RIGHTS,
                                          .cmsg_len = CMSG_LEN(sizeof(int)) };
        memcpy(CMSG_DATA(&rights.header), &entry->listener, sizeof(int));
    }
    return sendmsg(entry->control, &message, MSG_NOSIGNAL) > 0 ? 0 : -1;
}

void enter_sandbox(const struct zygote_fork *order, const int *fds, const struct filter *filter,
                   int *ret_control)
{
    struct entry entry = { .order = order,
                           .fds = fds,
                           .filter = filter,
                           .control = fds[ZYGOTE_FD_CONTROL],
                           .listener = -1 };
    error outcome = { 0 };
    bool stands = take_steps(&entry, &outcome) == 0;
    if (report(&entry, &outcome) < 0) {
        (void) fail_os(&outcome, "hand the listener to init"); /* ETOOMANYREFS: unix(7) */
        close_fd(&entry.listener);
        entry.listener = -1;
        (void) report(&entry, &outcome);
        stands = false;
    }
    if (!stands)
        _exit(125);
    close_fd(&entry.listener);
    *ret_control = entry.control;
}
