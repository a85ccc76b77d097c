/* fork_server.c - the first role of glovebox-init: with the template as root directory, and root of
 * a mapped user namespace, it clones itself for each sandbox. It never reads a byte that user code
 * could have written. */
#include "init/init.h"
#include "init/net_pool.h"

#include "contract/zygote.h"

#include "base/cleanup.h"
#include "base/packet.h"
#include "model/ids.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As spawner/fork_servers.c arranges them. */
enum {
    FORK_SOCKET = 3,
    FORK_FILTERS = 4,
    FILTERS = SPAWN_NETWORK_KINDS,
    FORK_MODULES = FORK_FILTERS + FILTERS + 1 /* this program is before it */
};

static struct filter filters[FILTERS];
static char modules[SPAWN_MODULES_MAX + 1]; /* as in spawn.h */
static const char *sets[SPAWN_SETS_MAX];    /* of each zygote */
static unsigned set_count;

static int load_filter(int file, struct filter *filter, error *err)
{
    ssize_t got = pread(file, filter->code, sizeof filter->code, 0);
    if (got <= 0 || (size_t) got % sizeof filter->code[0] != 0)
        return fail(err, ERR_UNAVAILABLE, "the system call filter of %zd bytes is no program", got);
    filter->instructions = (unsigned) ((size_t) got / sizeof filter->code[0]);
    (void) close(file);
    return 0;
}

static int load_modules(error *err)
{
    ssize_t size = pread(FORK_MODULES, modules, SPAWN_MODULES_MAX, 0);
    if (size < 0)
        return fail_os(err, "read the modules of the zygotes");
    for (const char *at = modules; at < modules + size && set_count < SPAWN_SETS_MAX;
         at += strlen(at) + 1)
        sets[set_count++] = at;
    (void) close(FORK_MODULES);
    return 0;
}

static bool is_disabled(const struct build_sandbox *spec, enum wall wall)
{
#ifdef GLOVEBOX_DISABLE_WALL
    return spec->disabled_walls_low & (1U << wall);
#else
    (void) spec;
    (void) wall;
    return false;
#endif
}

static unsigned long namespaces_for(const struct build_sandbox *spec)
{
    static const struct {
        unsigned long flag;
        enum wall wall;
    } rows[] = {
        { CLONE_NEWUSER, WALL_userns }, { CLONE_NEWPID, WALL_pidns }, { CLONE_NEWNET, WALL_netns },
        { CLONE_NEWIPC, WALL_ipcns },   { CLONE_NEWUTS, WALL_utsns },
    };
    unsigned long flags = CLONE_NEWNS; /* always, since the steps of the recipe need it */
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!is_disabled(spec, rows[i].wall))
            flags |= rows[i].flag;
    return flags;
}

static int write_map(pid_t pid, const char *file, const char *text)
{
    char path[64];
    (void) snprintf(path, sizeof path, "/proc/%d/%s", (int) pid, file);
    auto_fd map = open(path, O_WRONLY | O_CLOEXEC);
    size_t length = strlen(text);
    return map >= 0 && write(map, text, length) == (ssize_t) length ? 0 : -1;
}

/* One id exists inside: AGENT_ID, which is the sandbox's own id outside. */
static int map_ids(pid_t init, uint32_t outer, error *err)
{
    char text[64];
    (void) snprintf(text, sizeof text, "%u %u 1", (unsigned) AGENT_ID, outer);
    /* An ordinary user must deny setgroups(2) before gid_map is written; root may. */
    (void) write_map(init, "setgroups", "deny");
    if (write_map(init, "uid_map", text) < 0 || write_map(init, "gid_map", text) < 0)
        return fail_os(err, "map the id of the sandbox");
    return 0;
}

/* In the clone: keeps the descriptors and waits until its ids are mapped. */
static int become_clone(struct sandbox *sandbox, const struct build_sandbox *spec,
                        const struct packet *packet, int start_pipe, error *err)
{
    char byte;
    sandbox->spec = *spec;
    sandbox->filter = &filters[spec->network];
    sandbox->inside = packet->fd[0];
    sandbox->report = packet->fd[1];
    for (unsigned i = 0; i < spec->groups; i++) {
        sandbox->holders[i] = packet->fd[2 + i];
        sandbox->procs[i] = packet->fd[2 + spec->groups + i];
    }
    (void) signal(SIGCHLD, SIG_DFL);
    if (read(start_pipe, &byte, 1) != 1)
        return fail(err, ERR_UNAVAILABLE, "the fork server ended before ids were mapped");
    return 0;
}

enum { IS_FORK_SERVER = 0, IS_CLONE = 1 };

static int clone_sandbox(struct sandbox *sandbox, const struct build_sandbox *spec,
                         const struct packet *packet, int *ret_pidfd, error *err)
{
    int start_pipe[2];
    if (pipe2(start_pipe, O_CLOEXEC) < 0)
        return fail_os(err, "make a pipe");
    auto_fd pipe_read = start_pipe[0], pipe_write = start_pipe[1];
    int pidfd = -1;
    int place = net_pool_enter(spec); /* enters the network namespace, or clone3() makes one: */
    unsigned long flags = namespaces_for(spec) & ~(place < 0 ? 0UL : (unsigned long) CLONE_NEWNET);
    long pid = syscall(SYS_clone, flags | CLONE_PIDFD | SIGCHLD, NULL, &pidfd, NULL, NULL);
    if (pid == 0) {
        close_fd(&pipe_write);
        pipe_write = -1;
        (void) close(FORK_SOCKET);
        return become_clone(sandbox, spec, packet, pipe_read, err) < 0 ? -1 : IS_CLONE;
    }
    net_pool_leave(place, pidfd);
    if (pid < 0)
        return fail_os(err, "make the namespaces of a sandbox");
    *ret_pidfd = pidfd;
    if (!is_disabled(spec, WALL_userns) && map_ids((pid_t) pid, spec->agent_outer_id, err) < 0)
        return -1;
    if (write(pipe_write, "g", 1) != 1)
        return fail_os(err, "let the sandbox go on");
    return IS_FORK_SERVER;
}

/* The zygote is the template's own python, in the namespaces of the fork server: root only in the
 * user namespace, and without access to files of the host. */
_Noreturn static void become_zygote(const char *imports, int socket)
{
    enum { ZYGOTE_ARGUMENTS = 4, MODULES_MAX = 64 };
    static char names[4096];
    static const char *arguments[ZYGOTE_ARGUMENTS + MODULES_MAX + 1] = {
        "/usr/bin/python3", "-s", "/usr/lib/glovebox/zygote.py"
    };
    static const char *const environment[] = { "PATH=/usr/local/bin:/usr/bin:/bin",
                                               "HOME=/home/user",
                                               "LANG=C.UTF-8",
                                               "TZ=UTC",
                                               "MPLBACKEND=Agg",
                                               "PYTHONDONTWRITEBYTECODE=1",
                                               "PYTHONMALLOC=malloc",
                                               "GLIBC_TUNABLES=glibc.malloc.hugetlb=1",
                                               NULL };
    unsigned count = 3;
    (void) snprintf(names, sizeof names, "%s", imports);
    char *rest = names;
    for (char *name = strtok_r(rest, ",", &rest);
         name && count < ZYGOTE_ARGUMENTS - 1 + MODULES_MAX; name = strtok_r(NULL, ",", &rest))
        arguments[count++] = name;
    (void) signal(SIGCHLD, SIG_DFL);
    (void) signal(SIGPIPE, SIG_DFL);
    if (dup2(socket, ZYGOTE_SOCKET) < 0 || syscall(SYS_close_range, ZYGOTE_SOCKET + 1, ~0U, 0) < 0)
        _exit(126);
    (void) execve(arguments[0], (char **) (uintptr_t) arguments, (char **) (uintptr_t) environment);
    _exit(127);
}

/* The zygote reports over its own socket, which closes if it cannot be started. */
static void start_zygote(struct packet *packet)
{
    struct build_zygote order;
    error unheard;
    if (read_build_zygote(packet, set_count, &order, &unheard) == 0 && fork() == 0)
        become_zygote(sets[order.index], packet->fd[0]);
    packet_done(packet);
}

/* Returns IS_CLONE in the clone; IS_FORK_SERVER when the order has been carried out or refused. */
static int carry_out(struct sandbox *sandbox, struct packet *packet)
{
    struct build_sandbox spec = { 0 };
    struct build_cloned cloned = { 0 };
    auto_fd pidfd = -1;
    int done = read_build_sandbox(packet, &spec, &cloned.err);
    if (done == 0)
        done = clone_sandbox(sandbox, &spec, packet, &pidfd, &cloned.err);
    if (done == IS_CLONE)
        return IS_CLONE;
    if (getpid() == 1 && sandbox->spec.generation != 0)
        _exit(1); /* a clone that failed before it was set up */
    cloned.slot = spec.slot;
    cloned.generation = spec.generation;
    error unheard;
    (void) packet_send(FORK_SOCKET, BUILD_CLONED, &cloned, sizeof cloned, &pidfd,
                       done == IS_FORK_SERVER ? 1 : 0, &unheard);
    packet_done(packet);
    return IS_FORK_SERVER;
}

int fork_server_main(struct sandbox *sandbox, error *err)
{
    struct fork_server_ready ready = { 0 };
    int done = load_modules(&ready.err);
    if (fcntl(FORK_SOCKET, F_SETFD, FD_CLOEXEC) < 0)
        done = fail_os(&ready.err, "make the socket of the fork server close-on-exec");
    if (signal(SIGCHLD, SIG_IGN) == SIG_ERR)
        done = fail_os(&ready.err, "ignore SIGCHLD, so that the kernel reaps sandboxes");
    for (unsigned i = 0; i < FILTERS && done == 0; i++)
        done = load_filter(FORK_FILTERS + (int) i, &filters[i], &ready.err);
    if (packet_send(FORK_SOCKET, FORK_SERVER_READY, &ready, sizeof ready, NULL, 0, err) < 0 ||
        done < 0)
        return -1;

    net_pool_open();
    for (;;) {
        struct packet packet;
        net_pool_wait(FORK_SOCKET);
        int came = packet_receive(FORK_SOCKET, &packet, err);
        if (came == PACKET_NONE)
            continue;
        if (came != PACKET_CAME)
            return fail(err, ERR_SYSTEM, "the spawner is gone");
        if (packet.kind == BUILD_ZYGOTE)
            start_zygote(&packet);
        else if (carry_out(sandbox, &packet) == IS_CLONE)
            return 0;
    }
}
