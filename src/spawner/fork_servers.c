/* fork_servers.c - starts the fork server of a template and receives what it reports.
 *
 * A fork server is root of a user namespace that maps glovebox's block of ids (or, for an ordinary
 * user, only that user's id), and pid 1 of a pid namespace. It ends when the spawner does, and then
 * the kernel ends every sandbox that was cloned from it. */
#include "base/cleanup.h"
#include "model/ids.h"
#include "spawner/spawner.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Descriptors of the fork server, by number: what glovebox-init expects after exec. */
enum {
    FORK_SOCKET = 3,
    FORK_FILTERS,
    FORK_PROGRAM = FORK_FILTERS + FILTERS,
    FORK_MODULES,
    FORK_END
};

/* user_namespaces(7): a process without privileges may map its own id only, and must deny
 * setgroups(2). The id becomes 0 inside as well: with any other id execve(2) would drop the
 * capabilities that zygotes need. */
static int map_ids(const struct spawner *spawner, pid_t child, error *err)
{
    bool own = spawner->unprivileged;
    unsigned count = own ? 1 : (unsigned) HOST_ID_COUNT;
    char path[32];
    (void) snprintf(path, sizeof path, "/proc/%d", (int) child);
    auto_fd process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (own && write_file(process, "setgroups", "deny") < 0)
        return fail_os(err, "deny setgroups in the fork server's user namespace");
    if (write_file(process, "uid_map", "0 %u %u", own ? geteuid() : HOST_ID_BASE, count) < 0 ||
        write_file(process, "gid_map", "0 %u %u", own ? getegid() : HOST_ID_BASE, count) < 0)
        return fail_os(err, "map ids of the fork server");
    return 0;
}

static int become_root_inside(bool unprivileged, error *err)
{
    if (!unprivileged &&
        (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0))
        return fail_os(err, "become root of the fork server's user namespace");
    /* Set after the ids, since changing them clears it: prctl(2), PR_SET_PDEATHSIG. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return fail_os(err, "set the fork server's parent death signal");
    return 0;
}

/* Puts each descriptor at the number where the program looks for it, and closes everything else. */
static int arrange_descriptors(const int *wanted, unsigned count, error *err)
{
    int high[FORK_END - FORK_SOCKET];
    for (unsigned i = 0; i < count; i++) {
        high[i] = fcntl(wanted[i], F_DUPFD_CLOEXEC, 64);
        if (high[i] < 0)
            return fail_os(err, "arrange descriptors");
    }
    for (unsigned i = 0; i < count; i++)
        if (dup2(high[i], FORK_SOCKET + (int) i) < 0)
            return fail_os(err, "arrange descriptors");
    if (fcntl(FORK_PROGRAM, F_SETFD, FD_CLOEXEC) < 0 ||
        syscall(SYS_close_range, FORK_SOCKET + count, ~0U, 0) < 0)
        return fail_os(err, "close descriptors of the spawner");
    return 0;
}

static int become_fork_server(const struct spawner *spawner, const struct template *template,
                              int socket, int go, error *err)
{
    char byte;
    if (read(go, &byte, 1) != 1)
        return fail(err, ERR_SYSTEM, "the spawner did not map ids");
    if (become_root_inside(spawner->unprivileged, err) < 0)
        return -1;
    if (enter_template_root(spawner, err) < 0)
        return -1;

    int wanted[FORK_END - FORK_SOCKET] = { socket };
    for (unsigned i = 0; i < FILTERS; i++)
        wanted[FORK_FILTERS - FORK_SOCKET + i] = spawner->filters[i];
    wanted[FORK_PROGRAM - FORK_SOCKET] = spawner->program;
    wanted[FORK_MODULES - FORK_SOCKET] = template->modules;
    if (arrange_descriptors(wanted, FORK_END - FORK_SOCKET, err) < 0)
        return -1;

    /* execve(2) in the new user namespace makes the memory belong to it: the ptrace access check of
     * setns(pidfd) requires that. From sealed memory: CVE-2019-5736. */
    char name[] = "glovebox-init";
    char role[] = "holder";
    char *arguments[] = { name, role, NULL }; /* its NULL is also the empty environment */
    (void) syscall(SYS_execveat, FORK_PROGRAM, "", arguments, arguments + 2, AT_EMPTY_PATH);
    return fail_os(err, "execute glovebox-init");
}

/* Forks into new namespaces; the child joins its control groups itself. Its mount namespace has its
 * own copy of the mount of the working directory, so that the child needs no path for it:
 * open_tree(2) copies no mount of another namespace. */
static pid_t clone_child(int directory, int *ret_pidfd)
{
    if (fchdir(directory) < 0)
        return -1;
    unsigned long flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
                          CLONE_NEWNET | CLONE_PIDFD | SIGCHLD;
    return (pid_t) syscall(SYS_clone, flags, NULL, ret_pidfd, NULL, NULL);
}

int fork_server_start(struct spawner *spawner, uint32_t index, error *err)
{
    struct template *template = &spawner->templates[index];
    int pair[2], start[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return fail_os(err, "make a socket for a fork server");
    auto_fd ours = pair[0], theirs = pair[1];
    if (pipe2(start, O_CLOEXEC) < 0)
        return fail_os(err, "make a pipe for a fork server");
    auto_fd go_read = start[0], go_write = start[1];

    if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
        return fail_os(err, "make a socket for a fork server");
    auto_fd pidfd = -1;
    pid_t child = clone_child(template->directory, &pidfd);
    if (child < 0)
        return fail_os(err, "make namespaces of a fork server; `glovebox doctor` says what fails");
    if (child == 0) {
        error cause = { 0 };
        close_fd(&go_write);
        for (unsigned i = 0; i < spawner->root_count; i++)
            (void) !write(spawner->roots[i].holders, "0", 1);
        (void) become_fork_server(spawner, template, theirs, go_read, &cause);
        struct fork_server_ready failed = { .err = cause };
        (void) packet_send(theirs, FORK_SERVER_READY, &failed, sizeof failed, NULL, 0, &cause);
        _exit(1);
    }
    if (map_ids(spawner, child, err) < 0 ||
        (write(go_write, "g", 1) != 1 && fail_os(err, "let the fork server go on") < 0) ||
        watch(spawner, ours, WATCH_HOLDER, index, err) < 0) {
        (void) syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
        return -1; /* the next build tries again */
    }
    template->fork_server = take_fd(&pidfd);
    template->fork_server_socket = take_fd(&ours);
    return 0;
}

/* When a fork server ends, so do its sandboxes, which is seen at their pidfds. Builds under way
 * fail with this cause; NULL: the fork server ended. */
void fork_server_lost(struct spawner *spawner, uint32_t index, const error *cause)
{
    struct template *template = &spawner->templates[index];
    if (template->fork_server_socket >= 0)
        (void) close(template->fork_server_socket);
    if (template->fork_server > 0) {
        (void) syscall(SYS_pidfd_send_signal, template->fork_server, SIGKILL, NULL, 0);
        (void) close(template->fork_server);
    }
    template->fork_server = 0;
    template->fork_server_socket = -1;
    error ended;
    (void) fail(&ended, ERR_UNAVAILABLE, "the fork server of template %u ended", index);
    for (uint32_t i = 0; i < spawner->slot_count; i++) {
        struct slot *slot = &spawner->slots[i];
        if (slot->state == SLOT_BUILDING && slot->template == index)
            build_failed(spawner, slot, cause ? cause : &ended);
    }
    zygotes_of_template_are_lost(spawner, index);
}

static void server_is_ready(struct spawner *spawner, uint32_t index, const struct packet *packet)
{
    struct fork_server_ready ready;
    memcpy(&ready, packet->body, sizeof ready);
    if (ready.err.code == ERR_NONE)
        return;
    ready.err.text[sizeof ready.err.text - 1] = '\0';
    fork_server_lost(spawner, index,
                     &ready.err); /* the next request starts another, and fails the same way */
}

static void sandbox_is_cloned(struct spawner *spawner, struct packet *packet)
{
    struct build_cloned cloned;
    memcpy(&cloned, packet->body, sizeof cloned);
    struct slot *slot = slot_at(spawner, cloned.slot, cloned.generation);
    if (!slot || slot->init >= 0)
        return;
    if (cloned.err.code == ERR_NONE && packet->fds != 1)
        (void) fail(&cloned.err, ERR_PROTOCOL, "the fork server sent %u descriptors with a sandbox",
                    packet->fds);
    if (cloned.err.code != ERR_NONE) {
        cloned.err.text[sizeof cloned.err.text - 1] = '\0';
        build_failed(spawner, slot, &cloned.err);
        return;
    }
    slot->init = packet_take_fd(packet, 0);
    error err;
    if (slot->state == SLOT_LEAVING) /* the build has failed meanwhile */
        slot_leave(spawner, slot);
    else if (watch(spawner, slot->init, WATCH_INIT, (uint32_t) (slot - spawner->slots), &err) < 0)
        build_failed(spawner, slot, &err);
}

void fork_server_speaks(struct spawner *spawner, uint32_t index)
{
    struct packet packet;
    error err;
    int came = packet_receive(spawner->templates[index].fork_server_socket, &packet, &err);
    if (came == PACKET_NONE)
        return;
    if (came != PACKET_CAME && came != PACKET_CUT) {
        fork_server_lost(spawner, index, NULL);
        return;
    }
    if (packet.kind == FORK_SERVER_READY && packet.size == sizeof(struct fork_server_ready))
        server_is_ready(spawner, index, &packet);
    else if (packet.kind == BUILD_CLONED && packet.size == sizeof(struct build_cloned))
        sandbox_is_cloned(spawner, &packet);
    packet_done(&packet);
}
