/* groups.c - control groups, v2 or v1: one leaf for each sandbox, named by its slot, and one group
 * that the fork servers and inits share. For the cpu controller the leaves of a tenant lie in one
 * group: tenants get equal shares, however many sandboxes each has. Only names of this
 * file are opened. */
#include "base/cleanup.h"
#include "base/table.h"
#include "spawner/spawner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CPU_PERIOD_US = 100000, NAME_SIZE = 48, SOCKETS_PART = 8, CHARGED_MAX = 512 * 1024 };
enum { KEPT_GROUPS = 1 << GROUP_MEMORY | 1 << GROUP_CPU | 1 << GROUP_CPUACCT | 1 << GROUP_FREEZER };

int write_file(int directory, const char *name, const char *format, ...)
{
    char text[96];
    va_list values;
    va_start(values, format);
    int length = vsnprintf(text, sizeof text, format, values); /* NOLINT: it was started */
    va_end(values);
    auto_fd file = openat(directory, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    return file >= 0 && write(file, text, (size_t) length) == length ? 0 : -1;
}

struct names {
    char tenant[NAME_SIZE]; /* ends with a slash; "": this controller has no groups of tenants */
    char leaf[NAME_SIZE];
};

/* Each gloveboxd numbers its tenants by itself, so each instance has groups of its own for them. */
static struct names names_of(const struct spawner *spawner, const struct slot *slot,
                             enum group_kind kind)
{
    struct names names = { 0 };
    if (kind == GROUP_UNIFIED || kind == GROUP_CPU || kind == GROUP_CPUACCT)
        (void) snprintf(names.tenant, NAME_SIZE, "tenant-%u-%u/", spawner->first_slot,
                        slot->build.tenant);
    (void) snprintf(names.leaf, NAME_SIZE, "%.36s%u", names.tenant, slot_number(spawner, slot));
    return names;
}

/* cgroup v2: a parent enables controllers for its children. Each is written by itself, since one
 * that is missing would make the whole write fail. */
static void enable_controllers(int directory)
{
    static const char *const controllers[] = { "+memory", "+pids", "+cpu", "+io" };
    for_each(controller, controllers)
        (void) write_file(directory, "cgroup.subtree_control", "%s", *controller);
}

/* Another instance that ends removes this root if it is empty: until open_groups() has made a group
 * in it, ENOENT means that. */
static int open_root(struct group_root *root, error *err)
{
    bool unified = root->kind == GROUP_UNIFIED;
    do {
        if (mkdir(root->path, 0755) < 0 && errno != EEXIST)
            return fail_os(err, "make control group '%s'", root->path);
        root->directory = open(root->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    } while (root->directory < 0 && errno == ENOENT);
    if (root->directory < 0)
        return fail_os(err, "open control group '%s'", root->path);
    if (unified) {
        auto_fd above = openat(root->directory, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        enable_controllers(above);
        enable_controllers(root->directory);
    }
    return 0;
}

/* Opens the file into which a process writes "0" to join. It has one thread then, so that v1's
 * `tasks` will do: for a thread that moves itself the kernel does not stop all forks
 * (cgroup_attach_lock), which waits some 8 ms for a grace period when no process has joined for a
 * while. v2 moves only processes. */
static int open_members(int group, enum group_kind kind)
{
    int members = kind == GROUP_UNIFIED ? -1 : openat(group, "tasks", O_WRONLY | O_CLOEXEC);
    return members >= 0 ? members : openat(group, "cgroup.procs", O_WRONLY | O_CLOEXEC);
}

int open_groups(struct spawner *spawner, error *err)
{
    const char *name = spawner->holders;
    (void) snprintf(spawner->holders, sizeof spawner->holders, "holders-%u", spawner->first_slot);
    for (unsigned i = 0; i < spawner->root_count; i++) {
        struct group_root *root = &spawner->roots[i];
        while (mkdirat(root->directory, name, 0755) < 0 && errno != EEXIST)
            if (errno != ENOENT || close(root->directory) < 0 || open_root(root, err) < 0)
                return fail_os(err, "make control group '%s/%s'", root->path, name);
        auto_fd group = openat(root->directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        /* Inits need little processor time, but must get it to end a program that uses all of it:
         * eight times a tenant's weight (docs/decisions/0151). v2 has one file, v1 the other. */
        (void) write_file(group, "cpu.weight", "800");
        (void) write_file(group, "cpu.shares", "8192");
        /* The kernel patches its code (static keys) when the first group begins to count socket
         * memory, or the last ends (write_limits). This group always counts, which avoids that. */
        (void) write_file(group, "memory.kmem.tcp.limit_in_bytes", "-1");
        root->holders = group < 0 ? -1 : open_members(group, root->kind);
        if (root->holders < 0)
            return fail_os(err, "open control group '%s/%s'", root->path, name);
    }
    return 0;
}

/* limit_*() write one limit, for v2 (`unified`) or v1; one that the build does not ask for is not
 * written. */
static int limit_memory(int leaf, bool unified, const struct spawn_build *build)
{
    unsigned long long bytes = build->memory_bytes;
    if (unified) {
        (void) write_file(leaf, "memory.swap.max", "0");  /* absent without swap accounting */
        (void) write_file(leaf, "memory.oom.group", "1"); /* Linux 4.19 */
        return write_file(leaf, "memory.max", "%llu", bytes);
    }
    /* It may not exceed memory.memsw, which a leaf that is used again has from the last sandbox. */
    if (write_file(leaf, "memory.limit_in_bytes", "%llu", bytes) < 0 &&
        (write_file(leaf, "memory.memsw.limit_in_bytes", "-1") < 0 ||
         write_file(leaf, "memory.limit_in_bytes", "%llu", bytes) < 0))
        return -1;
    (void) write_file(leaf, "memory.memsw.limit_in_bytes", "%llu", bytes);
    return 0;
}

static int limit_cpu(int leaf, bool unified, const struct spawn_build *build)
{
    if (build->cpus_milli == 0)
        return 0;
    uint64_t quota = build->cpus_milli * CPU_PERIOD_US / 1000;
    unsigned long long least = quota < 1000 ? 1000 : quota;
    return unified ? write_file(leaf, "cpu.max", "%llu %d", least, CPU_PERIOD_US)
                   : write_file(leaf, "cpu.cfs_quota_us", "%llu", least);
}

static int limit_disk_rate(const struct spawner *spawner, int leaf, bool unified,
                           const struct spawn_build *build)
{
    unsigned major = spawner->disk_major, minor = spawner->disk_minor;
    unsigned long long rates[2] = { build->disk_read_rate, build->disk_write_rate };
    static const char *const v1[2] = { "blkio.throttle.read_bps_device",
                                       "blkio.throttle.write_bps_device" };
    static const char *const v2[2] = { "rbps", "wbps" };
    for (unsigned i = 0; i < 2; i++)
        if (rates[i] > 0 &&
            (major == 0 ||
             (unified ? write_file(leaf, "io.max", "%u:%u %s=%llu", major, minor, v2[i], rates[i])
                      : write_file(leaf, v1[i], "%u:%u %llu", major, minor, rates[i])) < 0))
            return -1;
    return 0;
}

static bool group_serves(enum group_kind have, enum group_kind need)
{
    return have == GROUP_UNIFIED || have == need;
}

/* Writes every limit that this group can enforce. The build fails if a memory or process limit
 * cannot be written; limits of socket buffers, processors and disk rates are then listed as
 * degraded. */
/* NOLINTNEXTLINE(readability-function-size): each parameter is a fact of its own */
static int write_limits(struct spawner *spawner, struct slot *slot, enum group_kind kind, int leaf,
                        const struct spawn_build *build, error *err)
{
    bool unified = kind == GROUP_UNIFIED;
    uint64_t disabled = spawner->disabled_walls;
    if (group_serves(kind, GROUP_MEMORY) && !(disabled & (1ULL << WALL_cgroup_memory)) &&
        limit_memory(leaf, unified, build) < 0)
        return fail_os(err, "limit memory to %llu bytes by control group",
                       (unsigned long long) build->memory_bytes);
    /* v1 counts the buffers of TCP and UDP apart from other memory, and only once they have a
     * limit. Without a network a sandbox cannot make such a socket. */
    if (kind == GROUP_MEMORY && build->network != SPAWN_NETWORK_NONE &&
        write_file(leaf, "memory.kmem.tcp.limit_in_bytes", "%llu",
                   (unsigned long long) build->memory_bytes / SOCKETS_PART) < 0)
        slot->degraded |= 1ULL << WALL_cgroup_memory;
    if (group_serves(kind, GROUP_PIDS) && !(disabled & (1ULL << WALL_cgroup_pids)) &&
        write_file(leaf, "pids.max", "%llu", (unsigned long long) build->processes) < 0)
        return fail_os(err, "limit processes to %llu by control group",
                       (unsigned long long) build->processes);
    if (group_serves(kind, GROUP_CPU) && !(disabled & (1ULL << WALL_cgroup_cpu)) &&
        limit_cpu(leaf, unified, build) < 0)
        slot->degraded |= 1ULL << WALL_cgroup_cpu;
    if (group_serves(kind, GROUP_BLKIO) && !(disabled & (1ULL << WALL_cgroup_io)) &&
        limit_disk_rate(spawner, leaf, unified, build) < 0)
        slot->degraded |= 1ULL << WALL_cgroup_io;
    return 0;
}

static int make_leaf(struct spawner *spawner, struct slot *slot, const struct group_root *root,
                     const struct spawn_build *build, error *err)
{
    struct names names = names_of(spawner, slot, root->kind);
    if (*names.tenant && !(slot->kept & (1U << root->kind)) &&
        mkdirat(root->directory, names.tenant, 0755) == 0 && root->kind == GROUP_UNIFIED) {
        auto_fd tenant = openat(root->directory, names.tenant, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        enable_controllers(tenant);
    }
    if (!(slot->kept & (1U << root->kind)) && mkdirat(root->directory, names.leaf, 0755) < 0 &&
        errno != EEXIST)
        return fail_os(err, "make control group '%s/%s'", root->path, names.leaf);
    slot->groups |= 1U << root->kind;
    auto_fd leaf = openat(root->directory, names.leaf, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int procs = leaf < 0 ? -1 : open_members(leaf, root->kind);
    if (procs < 0)
        return fail_os(err, "open control group '%s/%s'", root->path, names.leaf);
    slot->procs[slot->procs_count++] = procs;
    if (group_serves(root->kind, GROUP_BLKIO))
        slot->degraded &= ~(1ULL << WALL_cgroup_io);
    return write_limits(spawner, slot, root->kind, leaf, build, err);
}

/* A leaf of a v1 controller takes 24 µs: controllers without a limit to enforce get none. */
int make_leaves(struct spawner *spawner, struct slot *slot, const struct spawn_build *build,
                error *err)
{
    bool has_rate = build->disk_read_rate || build->disk_write_rate;
    if (has_rate)
        slot->degraded |= 1ULL << WALL_cgroup_io; /* until a group has taken the rate */
    for (unsigned i = 0; i < spawner->root_count; i++)
        if ((spawner->roots[i].kind != GROUP_BLKIO || has_rate) &&
            make_leaf(spawner, slot, &spawner->roots[i], build, err) < 0)
            return -1;
    return 0;
}

/* Opens one leaf for gloveboxd. The files belong to root, so it can only read counters. */
int open_leaf(const struct spawner *spawner, const struct slot *slot, enum group_kind kind)
{
    for (unsigned i = 0; i < spawner->root_count; i++)
        if (group_serves(spawner->roots[i].kind, kind))
            return openat(spawner->roots[i].directory,
                          names_of(spawner, slot, spawner->roots[i].kind).leaf,
                          O_PATH | O_DIRECTORY | O_CLOEXEC);
    return -1;
}

/* Fails while a process is still inside (EBUSY); the caller tries again. */
static int remove_kinds(const struct spawner *spawner, const struct slot *slot, uint32_t kinds)
{
    int result = 0;
    for (unsigned i = 0; i < spawner->root_count; i++) {
        const struct group_root *root = &spawner->roots[i];
        struct names names = names_of(spawner, slot, root->kind);
        if (!(kinds & (1U << root->kind)))
            continue;
        if (unlinkat(root->directory, names.leaf, AT_REMOVEDIR) < 0 && errno != ENOENT)
            result = -1;
        if (*names.tenant)
            (void) unlinkat(root->directory, names.tenant, AT_REMOVEDIR); /* if it was the last */
    }
    return result;
}

void drop_kept_leaves(const struct spawner *spawner, struct slot *slot)
{
    (void) remove_kinds(spawner, slot, slot->kept);
    slot->kept = 0;
}

/* Resets the counters of a leaf. Those that cannot be reset must be those of a new one, and what is
 * still charged must be little, so that the next sandbox cannot tell that there was another. */
static bool is_as_new(int leaf, enum group_kind kind)
{
    static const char never[] = "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n";
    char kills[sizeof never] = "";
    char charged[24] = "";
    if (kind != GROUP_MEMORY) /* the two may be one hierarchy */
        return write_file(leaf, "cpuacct.usage", "0") == 0 || kind != GROUP_CPUACCT;
    auto_fd oom = openat(leaf, "memory.oom_control", O_RDONLY | O_CLOEXEC);
    auto_fd usage = openat(leaf, "memory.usage_in_bytes", O_RDONLY | O_CLOEXEC);
    return read(oom, kills, sizeof kills) == sizeof never - 1 && strcmp(kills, never) == 0 &&
           read(usage, charged, sizeof charged - 1) > 0 &&
           strtoull(charged, NULL, 10) <= CHARGED_MAX &&
           write_file(leaf, "memory.failcnt", "0") == 0 &&
           write_file(leaf, "memory.max_usage_in_bytes", "0") == 0;
}

/* When the leaf of pids can be removed, no process is in the others either, since a process is in
 * the leaves of one slot. With v1, some leaves are kept with the slot for its tenant's next
 * sandbox, unless they have settings that it might not ask for. */
int remove_leaves(const struct spawner *spawner, struct slot *slot)
{
    const struct spawn_build *build = &slot->build;
    bool is_plain = slot->groups & (1U << GROUP_PIDS) && !slot->is_frozen &&
                    build->network == SPAWN_NETWORK_NONE && build->cpus_milli == 0;
    bool keeps = is_plain && slot - spawner->slots < SLOTS_KEEPING;
    uint32_t may_stay = keeps ? slot->groups & KEPT_GROUPS : 0, worn = 0;
    if (remove_kinds(spawner, slot, slot->groups & ~may_stay) < 0)
        return -1;
    for (unsigned kind = 0; kind < GROUPS; kind++)
        if (may_stay & (1U << kind)) {
            auto_fd leaf = open_leaf(spawner, slot, kind);
            worn |= is_as_new(leaf, kind) ? 0 : 1U << kind;
        }
    slot->kept = (slot->kept & ~slot->groups) | (may_stay & ~worn);
    return remove_kinds(spawner, slot, worn);
}

int set_frozen(const struct spawner *spawner, const struct slot *slot, bool frozen, error *err)
{
    enum group_kind kind = slot->groups & (1U << GROUP_UNIFIED) ? GROUP_UNIFIED : GROUP_FREEZER;
    auto_fd leaf = open_leaf(spawner, slot, kind);
    if (leaf < 0)
        return fail(err, ERR_UNAVAILABLE, "no control group here can freeze a sandbox");
    int done = kind == GROUP_UNIFIED
                   ? write_file(leaf, "cgroup.freeze", frozen ? "1" : "0")
                   : write_file(leaf, "freezer.state", frozen ? "FROZEN" : "THAWED");
    return done < 0 ? fail_os(err, "freeze or thaw the sandbox") : 0;
}

void close_groups(struct spawner *spawner)
{
    for (uint32_t i = 0; i < spawner->slot_count; i++)
        drop_kept_leaves(spawner, &spawner->slots[i]);
    for (unsigned i = 0; i < spawner->root_count; i++)
        (void) unlinkat(spawner->roots[i].directory, spawner->holders, AT_REMOVEDIR);
    for (unsigned i = 0; i < spawner->root_count; i++)
        (void) rmdir(spawner->roots[i].path); /* fails while another instance has groups in it */
}

/* Kills what is still in a group without owner. Its procs file has one number each line. */
static void kill_group(int group)
{
    if (write_file(group, "cgroup.kill", "1") == 0) /* Linux 5.14 */
        return;
    (void) write_file(group, "freezer.state", "THAWED"); /* frozen processes do not die */
    auto_fd procs = openat(group, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    char text[4096];
    ssize_t got = procs < 0 ? -1 : read(procs, text, sizeof text - 1);
    for (ssize_t i = 0, pid = 0; i < got; i++) {
        bool is_digit = text[i] >= '0' && text[i] <= '9';
        if (!is_digit && pid > 1)
            (void) kill((pid_t) pid, SIGKILL);
        pid = is_digit ? pid * 10 + (text[i] - '0') : 0;
    }
}

/* Gives the slot of a leaf, or the first slot of the instance that a group belongs to. */
static bool slot_of_group(const char *name, uint32_t *ret_slot)
{
    name += strncmp(name, "tenant-", 7) == 0 ? 7 : strncmp(name, "holders-", 8) == 0 ? 8 : 0;
    if (*name < '0' || *name > '9')
        return false;
    char *end;
    unsigned long slot = strtoul(name, &end, 10);
    *ret_slot = (uint32_t) slot;
    return (*end == '\0' || *end == '-') && slot < UINT32_MAX;
}

static bool sweep_group(int root, const char *name)
{
    auto_fd group = openat(root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (group < 0)
        return false;
    for (int tried = 0; tried < 200; tried++) {
        if (unlinkat(root, name, AT_REMOVEDIR) == 0)
            return true;
        kill_group(group);
        (void) usleep(5000);
    }
    return false;
}

/* Removes the leaves of a tenant of a dead instance: their slots are its first or later ones. */
static uint32_t sweep_tenant(int root, const char *tenant, uint32_t first_slot)
{
    uint32_t swept = 0;
    char name[NAME_SIZE];
    for (uint32_t slot = first_slot; slot < first_slot + SLOTS_HERE_MAX; slot++) {
        (void) snprintf(name, sizeof name, "%.36s/%u", tenant, slot);
        swept += sweep_group(root, name);
    }
    return swept + sweep_group(root, tenant);
}

/* Removes every group whose slot has no owner. Returns how many there were. Frozen processes die
 * only when they are thawed, so the freezer's root comes first (supervisor/cgroup_setup.c). */
uint32_t sweep_groups(struct spawner *spawner, bool (*is_abandoned)(uint32_t slot))
{
    uint32_t swept = 0;
    for (unsigned i = 0; i < spawner->root_count; i++) {
        int root = spawner->roots[i].directory;
        DIR *entries = fdopendir(openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!entries)
            continue;
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
        for (const struct dirent *entry = readdir(entries); entry; entry = readdir(entries)) {
            uint32_t slot;
            if (entry->d_type == DT_DIR && slot_of_group(entry->d_name, &slot) &&
                is_abandoned(slot))
                swept += *entry->d_name == 't' ? sweep_tenant(root, entry->d_name, slot)
                                               : sweep_group(root, entry->d_name);
        }
        (void) closedir(entries);
    }
    return swept;
}

/* The kernel checks RLIMIT_NPROC when a fork begins, and the group's limit near its end. Room for
 * one more fork of each process makes the group refuse first, whose counter then shows it. */
uint64_t processes_backstop(const struct spawner *spawner, const struct spawn_build *build)
{
    uint64_t stands = walls_of_groups(spawner) & ~spawner->disabled_walls;
    return stands & (1ULL << WALL_cgroup_pids) ? 2 * build->processes : build->processes;
}

uint64_t walls_of_groups(const struct spawner *spawner)
{
    static const struct {
        enum group_kind kind;
        enum wall wall;
        const char *file; /* v2 has the controller if the fork servers' group has this file */
    } rows[] = {
        { GROUP_MEMORY, WALL_cgroup_memory, "memory.max" },
        { GROUP_PIDS, WALL_cgroup_pids, "pids.max" },
        { GROUP_CPU, WALL_cgroup_cpu, "cpu.max" },
        { GROUP_BLKIO, WALL_cgroup_io, "io.max" },
    };
    uint64_t walls = 0;
    for (unsigned i = 0; i < spawner->root_count; i++) {
        auto_fd group =
            openat(spawner->roots[i].directory, spawner->holders, O_PATH | O_DIRECTORY | O_CLOEXEC);
        for_each(row, rows)
            if (spawner->roots[i].kind == row->kind || (spawner->roots[i].kind == GROUP_UNIFIED &&
                                                        faccessat(group, row->file, F_OK, 0) == 0))
                walls |= 1ULL << row->wall;
    }
    return walls;
}

int open_group_roots(struct spawner *spawner, error *err)
{
    for (unsigned i = 0; i < spawner->root_count; i++)
        if (open_root(&spawner->roots[i], err) < 0)
            return -1;
    return 0;
}
