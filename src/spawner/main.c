/* glovebox-spawner - the only program of glovebox that is root.
 *
 * It reads its command line, then makes, ends and removes sandboxes as gloveboxd asks (requests.c).
 * One peer, one thread, no heap after start, no text to parse. When gloveboxd ends, the spawner
 * ends every sandbox and itself. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/table.h"
#include "contract/build.h"
#include "spawner/spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct spawner spawner;

/* The paths and numbers of the command line; nothing is opened yet. */
static struct settings {
    const char *init;
    const char *filters[FILTERS];
    unsigned filter_count;
    const char *python;
    const char *slots_file;
    const char *templates;
    uint32_t slots;
} settings = { .slots = 64 };

int watch(const struct spawner *from, int fd, enum watched kind, uint32_t index, error *err)
{
    struct epoll_event event = { .events = EPOLLIN, .data.u64 = (uint64_t) kind << 32 | index };
    if (epoll_ctl(from->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        return fail_os(err, "watch a descriptor");
    return 0;
}

/* --group KIND=PATH */
static int add_group(const char *text, error *err)
{
    static const char *const kinds[GROUPS] = {
#define CGROUP(name, text) text,
#include "contract/cgroups.def"
    };
    const char *path = strchr(text, '=');
    if (!path || spawner.root_count == GROUPS)
        return fail(err, ERR_BAD_REQUEST, "--group takes KIND=PATH, not '%s'", text);
    for (unsigned kind = 0; kind < GROUPS; kind++)
        if (strncmp(text, kinds[kind], (size_t) (path - text)) == 0 &&
            kinds[kind][path - text] == '\0') {
            spawner.roots[spawner.root_count++] = (struct group_root){
                .kind = (enum group_kind) kind, .path = path + 1, .directory = -1, .holders = -1
            };
            return 0;
        }
    return fail(err, ERR_BAD_REQUEST, "--group knows no kind '%s'", text);
}

static int add_filter(const char *path, error *err)
{
    if (settings.filter_count == FILTERS)
        return fail(err, ERR_BAD_REQUEST, "more than %d filters", FILTERS);
    settings.filters[settings.filter_count++] = path;
    return 0;
}

static int read_count(const char *name, const char *text, uint32_t max, uint32_t *ret_count,
                      error *err)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || value > max)
        return fail(err, ERR_BAD_REQUEST, "%s: '%s' is not a number up to %u", name, text, max);
    *ret_count = (uint32_t) value;
    return 0;
}

static int take_option(const char *name, const char *value, error *err)
{
    if (strcmp(name, "--group") == 0)
        return add_group(value, err);
    if (strcmp(name, "--daemon") == 0)
        return read_count(name, value, INT_MAX, (uint32_t *) &spawner.daemon, err);
    if (strcmp(name, "--slots") == 0)
        return read_count(name, value, SLOTS_HERE_MAX, &settings.slots, err);
    if (strcmp(name, "--filter") == 0)
        return add_filter(value, err);
    if (strcmp(name, "--disk-major") == 0)
        return read_count(name, value, UINT32_MAX, &spawner.disk_major, err);
    if (strcmp(name, "--disk-minor") == 0)
        return read_count(name, value, UINT32_MAX, &spawner.disk_minor, err);
    if (strcmp(name, "--init") == 0)
        settings.init = value;
    else if (strcmp(name, "--python") == 0)
        settings.python = value;
    else if (strcmp(name, "--slots-file") == 0)
        settings.slots_file = value;
    else if (strcmp(name, "--templates") == 0)
        settings.templates = value;
#ifdef GLOVEBOX_DISABLE_WALL
    else if (strcmp(name, "--disable-wall") == 0)
        spawner.disabled_walls = strtoull(value, NULL, 10);
#endif
    else
        return fail(err, ERR_BAD_REQUEST, "unknown option '%s'", name);
    return 0;
}

static int read_command_line(int count, char **arguments, error *err)
{
    spawner.daemon = -1;
    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "--unprivileged") == 0) {
            spawner.unprivileged = true;
            continue;
        }
        if (i + 1 >= count)
            return fail(err, ERR_BAD_REQUEST, "'%s' needs a value", arguments[i]);
        if (take_option(arguments[i], arguments[i + 1], err) < 0)
            return -1;
        i++;
    }
    if (spawner.daemon < 0 || !settings.init || settings.filter_count != FILTERS ||
        !settings.slots_file || !settings.templates || settings.slots == 0)
        return fail(err, ERR_BAD_REQUEST,
                    "--daemon, --init, --slots-file, --templates and %d --filter are needed, and "
                    "--slots is not 0",
                    FILTERS);
    return 0;
}

/* Copies a file into sealed memory: it cannot be changed any more, and a sandbox cannot reach the
 * file's inode through it (CVE-2019-5736). */
static int load_sealed(const char *path, unsigned flags, int *ret_memory, error *err)
{
    auto_fd file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat status;
    if (file < 0 || fstat(file, &status) < 0)
        return fail_os(err, "open '%s'", path);
    auto_fd memory = memfd_create("glovebox", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
    if (memory < 0 && errno == EINVAL) /* MFD_EXEC exists since Linux 6.3 */
        memory = memfd_create("glovebox", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory < 0)
        return fail_os(err, "create memory for '%s'", path);
    static char block[65536];
    for (off_t left = status.st_size; left > 0;) {
        ssize_t got = read(file, block, sizeof block);
        if (got <= 0 || write(memory, block, (size_t) got) != got)
            return fail_os(err, "copy '%s' into memory", path);
        left -= got;
    }
    if (fcntl(memory, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
        return fail_os(err, "seal '%s'", path);
    *ret_memory = take_fd(&memory);
    return 0;
}

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

static int load_files(error *err)
{
    if (load_sealed(settings.init, MFD_EXEC, &spawner.program, err) < 0)
        return -1;
    for (unsigned i = 0; i < FILTERS; i++) {
        if (load_sealed(settings.filters[i], 0, &spawner.filters[i], err) < 0)
            return -1;
        off_t size = lseek(spawner.filters[i], 0, SEEK_END);
        if (size <= 0 || size % (off_t) sizeof(struct sock_filter) != 0 ||
            size / (off_t) sizeof(struct sock_filter) > BUILD_FILTER_MAX)
            return fail(err, ERR_UNAVAILABLE, "'%s' is not a seccomp program", settings.filters[i]);
    }
    spawner.python = -1;
    if (settings.python) {
        spawner.python = open(settings.python, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (spawner.python < 0)
            return fail_os(err, "open '%s'", settings.python);
    }
    return 0;
}

/* Keeps those that map ids, write control groups and end processes of other users. */
static int keep_few_capabilities(error *err)
{
    static const unsigned kept[] = { CAP_SYS_ADMIN, CAP_SETUID,       CAP_SETGID,
                                     CAP_KILL,      CAP_DAC_OVERRIDE, CAP_SYS_RESOURCE };
    if (spawner.unprivileged)
        return 0;
    uint64_t wanted = 0;
    for_each(capability, kept)
        wanted |= 1ULL << *capability;
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct sets[2];
    if (syscall(SYS_capget, &header, sets) < 0)
        return fail_os(err, "read capabilities");
    for (unsigned i = 0; i < 2; i++) {
        uint32_t word = (uint32_t) (wanted >> (32 * i)) & sets[i].permitted;
        sets[i] = (struct __user_cap_data_struct){ .effective = word, .permitted = word };
    }
    for (unsigned i = 0; i <= 63; i++)
        if (!(wanted & (1ULL << i)) && prctl(PR_CAPBSET_DROP, i, 0, 0, 0) < 0 && errno != EINVAL)
            return fail_os(err, "drop capability %u", i);
    return syscall(SYS_capset, &header, sets) < 0 ? fail_os(err, "drop capabilities") : 0;
}

/* When the host runs out of memory, sandboxes are killed first: children inherit the score. EACCES:
 * ours is higher already, and may not be lowered. */
static int set_oom_score(error *err)
{
    if (write_file(AT_FDCWD, "/proc/self/oom_score_adj", "300") < 0 && errno != EACCES)
        return fail_os(err, "raise the oom score");
    return 0;
}

/* The kernel counts descriptors in flight by user id, and refuses a sender when they exceed its own
 * limit of open files (unix(7), ETOOMANYREFS). Where sandboxes have our user id, one could block us
 * that way; the limit of its programs is far below the one set here. */
static void raise_open_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return;
    files.rlim_cur = files.rlim_max;
    (void) setrlimit(RLIMIT_NOFILE, &files);
}

static int prepare(int count, char **arguments, error *err)
{
    for (unsigned i = 0; i < ZYGOTES_MAX; i++)
        spawner.zygotes[i].socket = -1;
    for (unsigned i = 0; i < SPAWN_TEMPLATES_MAX; i++)
        spawner.templates[i] = (struct template){ -1, -1, .fork_server_socket = -1 };
    if (read_command_line(count, arguments, err) < 0)
        return -1;
    /* CVE-2026-41163. Not for an ordinary user, who can trace us anyway and writes the child's id
     * maps. */
    if (!spawner.unprivileged && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return fail_os(err, "clear the dumpable flag");
    (void) umask(0022);
    raise_open_files();
    (void) signal(SIGPIPE, SIG_IGN);
    (void) signal(SIGCHLD, SIG_IGN); /* the kernel reaps fork servers; their sockets show the end */
    if (!(spawner.disabled_walls & (1ULL << WALL_oom_score)) && set_oom_score(err) < 0)
        return -1;
    spawner.folder = opendir(settings.templates);
    if (!spawner.folder)
        return fail_os(err, "open the folder of templates '%s'", settings.templates);
    spawner.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (spawner.epoll < 0)
        return fail_os(err, "create epoll");
    if (fcntl(spawner.daemon, F_SETFD, FD_CLOEXEC) < 0 ||
        fcntl(spawner.daemon, F_SETFL, O_NONBLOCK) < 0)
        return fail_os(err, "take the daemon's socket");
    if (load_files(err) < 0 || open_group_roots(&spawner, err) < 0 ||
        lock_slots(&spawner, settings.slots_file, settings.slots, err) < 0 ||
        open_groups(&spawner, err) < 0 || keep_few_capabilities(err) < 0)
        return -1;
    return watch(&spawner, spawner.daemon, WATCH_DAEMON, 0, err);
}

static int greet(error *err)
{
    struct spawn_hello hello = {
        .version = SPAWN_VERSION,
        .slots = spawner.slot_count,
        .first_slot = spawner.first_slot,
        .walls = walls_of_groups(&spawner),
        .swept = spawner.swept,
    };
    for (unsigned i = 0; i < spawner.root_count; i++)
        hello.groups |= 1U << spawner.roots[i].kind;
    return packet_send(spawner.daemon, SPAWN_HELLO, &hello, sizeof hello, NULL, 0, err);
}

static void init_ended(struct slot *slot)
{
    if (epoll_ctl(spawner.epoll, EPOLL_CTL_DEL, slot->init, NULL) < 0)
        return;
    if (slot->state == SLOT_BUILDING) {
        error cause;
        (void) fail(&cause, ERR_UNAVAILABLE, "init ended before the sandbox was built");
        build_failed(&spawner, slot, &cause);
    } else if (slot->state == SLOT_STANDING) {
        struct spawn_slot lost = { .slot = slot_number(&spawner, slot),
                                   .generation = slot->generation };
        error unheard;
        (void) packet_send(spawner.daemon, SPAWN_LOST, &lost, sizeof lost, NULL, 0, &unheard);
        slot->state = SLOT_LEAVING; /* the daemon reads its counters, then asks for the release */
        slot->until_ms = now_ms() + 60000;
        slot->lost = true;
    }
}

/* Returns PACKET_CLOSED when gloveboxd is gone or breaks the protocol. */
static int daemon_speaks(error *err)
{
    struct packet packet;
    int came = packet_receive(spawner.daemon, &packet, err);
    if (came != PACKET_CAME)
        return came;
    int done = answer(&spawner, &packet, err);
    packet_done(&packet);
    /* A slot that has ended already is no error: both sides may end it at the same time. */
    return done;
}

static void handle(const struct epoll_event *event, bool *ret_daemon_gone)
{
    error err = { 0 };
    uint32_t index = (uint32_t) event->data.u64;
    struct slot *slot = &spawner.slots[index % SLOTS_HERE_MAX];
    int spoke;
    switch ((enum watched)(event->data.u64 >> 32)) {
    case WATCH_DAEMON:
        spoke = daemon_speaks(&err);
        *ret_daemon_gone |= spoke == PACKET_CLOSED;
        if (spoke < 0)
            (void) fprintf(stderr, "glovebox-spawner: refused: %s\n", err.text);
        break;
    case WATCH_HOLDER:
        fork_server_speaks(&spawner, index);
        break;
    case WATCH_REPORT:
        sandbox_reports(&spawner, slot);
        break;
    case WATCH_INIT:
        init_ended(slot);
        break;
    case WATCH_ZYGOTE:
        zygote_speaks(&spawner, index);
        break;
    }
}

static void serve(void)
{
    bool daemon_gone = false, some_leave = false;
    while (!daemon_gone && !spawner.is_swept) {
        struct epoll_event events[64];
        int count = epoll_wait(spawner.epoll, events, COUNT_OF(events), some_leave ? 1 : 1000);
        for (int i = 0; i < count; i++)
            handle(&events[i], &daemon_gone);
        some_leave = slots_tend(&spawner);
        zygotes_tend(&spawner);
    }
    if (spawner.is_swept)
        (void) fprintf(stderr, "glovebox-spawner: another service has removed our control groups, "
                               "and ended what ran in them; exiting, to make them again. Give it "
                               "this one's /run/glovebox, or control groups of its own\n");
}

/* Kills the fork servers, and with them every process of every sandbox; then removes the groups. */
static void remove_everything(void)
{
    for (uint32_t i = 0; i < spawner.slot_count; i++)
        if (spawner.slots[i].state != SLOT_FREE) {
            spawner.slots[i].lost = false;
            slot_leave(&spawner, &spawner.slots[i]);
        }
    for (uint32_t i = 0; i < SPAWN_TEMPLATES_MAX; i++)
        fork_server_lost(&spawner, i, NULL);
    (void) signal(SIGCHLD, SIG_DFL);
    deadline end = deadline_in(5000);
    while (slots_tend(&spawner) && !deadline_has_passed(end))
        (void) usleep(1000);
    while (waitpid(-1, NULL, 0) > 0) /* fork servers: we have no other children */
        continue;
    close_groups(&spawner);
}

int main(int count, char **arguments)
{
    error err = { 0 };
    if (prepare(count, arguments, &err) < 0 || greet(&err) < 0) {
        (void) fprintf(stderr, "glovebox-spawner: %s\n", err.text);
        remove_everything();
        return 125;
    }
    serve();
    remove_everything();
    return 0;
}
