/* recipe.c - the steps that build a sandbox, in order. A step may rely on every step above it, and
 * on none below. limit_calls is last because it forbids most of the calls made above it.
 *
 * The process is in new user, mount, pid, network, IPC and UTS namespaces. Its root is already the
 * template, read-only (spawner/template_root.c), whose mounts are locked (mount_namespaces(7)). */
#include "init/init.h"
#include "init/walls.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "model/ids.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* All steps have one signature, and some do not use all parameters. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static int take_inside_id(struct sandbox *sandbox, error *err)
{
    return take_id(AGENT_ID, err);
}

/* A control group namespace shows the group in which it was made as "/". So init enters the
 * program's group for a moment, and leaves it: the program's limits must not apply to init. */
static int own_group_view(struct sandbox *sandbox, error *err)
{
    unsigned groups = sandbox->spec.groups;
    if (join_groups(sandbox->procs, groups, err) < 0)
        return -1;
    if (unshare(CLONE_NEWCGROUP) < 0)
        return fail_os(err, "make a control group namespace");
    return join_groups(sandbox->holders, groups, err);
}

static int name_host(struct sandbox *sandbox, error *err)
{
    static const char name[] = "glovebox";
    if (sethostname(name, sizeof name - 1) < 0 || setdomainname("", 0) < 0)
        return fail_os(err, "name the host");
    return 0;
}

/* The limits are those of this user namespace: namespaces(7), /proc/sys/user. The filter refuses
 * further user namespaces as well; this is a second wall. inotify instances and watches also count
 * for the owners of all parent namespaces (kernel/ucount.c): without this limit one sandbox could
 * take all 128 instances that root has on the whole host. */
static int bound_user_namespace(struct sandbox *sandbox, error *err)
{
    static const struct {
        const char *path;
        const char *max;
    } bounds[] = {
        { "/proc/sys/user/max_user_namespaces", "0" },
        { "/proc/sys/user/max_inotify_instances", "16" },
        { "/proc/sys/user/max_inotify_watches", "8192" },
    };
    for_each(bound, bounds) {
        auto_fd max = open(bound->path, O_WRONLY | O_CLOEXEC);
        size_t length = strlen(bound->max);
        if (max < 0 || write(max, bound->max, length) != (ssize_t) length)
            return fail_os(err, "write %s to '%s'", bound->max, bound->path);
    }
    return 0;
}

/* Where no control group counts, init does (usage.c). It needs a /proc that hides no process: this
 * mount is detached again, so that only init's descriptor reaches it. subset=pid leaves out
 * everything that is not a process: /proc/sys, kcore, keys … */
static int keep_processes(struct sandbox *sandbox, error *err)
{
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "subset=pid") < 0)
        return fail_os(err, "mount '/proc' for init");
    sandbox->processes = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (sandbox->processes < 0 || umount2("/proc", MNT_DETACH) < 0)
        return fail_os(err, "take '/proc' for init");
    return 0;
}

static int mount_processes(struct sandbox *sandbox, error *err)
{
    /* From the fork server's /proc: the new one has none. -1 if it is missing: kill(-1) is used. */
    sandbox->last_pid = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    if (sandbox->last_pid < 0 && errno != ENOENT)
        return fail_os(err, "open '/proc/loadavg'");
    if (sandbox->spec.groups == 0 && keep_processes(sandbox, err) < 0)
        return -1;
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
              "subset=pid,hidepid=invisible") < 0)
        return fail_os(err, "mount '/proc'");
    return 0;
}

/* A devpts of its own shows no terminal of the host or of another sandbox, and bounds how many of
 * the host's terminals (kernel.pty.max) a sandbox can take: 16. */
static int mount_terminals(struct sandbox *sandbox, error *err)
{
    if (mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
              "newinstance,ptmxmode=0666,mode=0600,max=16") < 0)
        return fail_os(err, "mount '/dev/pts'");
    return 0;
}

static int raise_loopback(struct sandbox *sandbox, error *err)
{
    if (sandbox->spec.network == SPAWN_NETWORK_NONE)
        return 0;
    auto_fd control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
    if (control < 0 || ioctl(control, SIOCSIFFLAGS, &lo) < 0)
        return fail_os(err, "raise the loopback interface");
    return 0;
}

/* Moves a descriptor to the number where it is kept; all others are closed. */
static int keep(int *fd, int place, error *err)
{
    if (*fd == place)
        return 0;
    if (dup3(*fd, place, O_CLOEXEC) < 0)
        return fail_os(err, "keep descriptor %d", *fd);
    *fd = place;
    return 0;
}

enum { AWAY = 64, FILES_OF_INIT = 1024 };

/* Closes whatever the fork server or the spawner had open (CVE-2024-21626): 0 to 2 become
 * /dev/null, followed by the sandbox's own descriptors. */
static int close_descriptors(struct sandbox *sandbox, error *err)
{
    int *ours[7 + 3 + 4 + GROUPS] = { &sandbox->inside, &sandbox->report, &sandbox->root,
                                      &sandbox->workspace };
    unsigned count = 4;
    if (sandbox->last_pid > 0)
        ours[count++] = &sandbox->last_pid;
    if (sandbox->spec.start == SPAWN_FORKED) {
        struct program *interpreter = &sandbox->programs[0];
        if (expect_interpreter(sandbox, interpreter, err) < 0)
            return -1;
        ours[count++] = &interpreter->control;
        ours[count++] = &interpreter->input;
        ours[count++] = &interpreter->outputs[0];
        ours[count++] = &interpreter->outputs[1];
        for (unsigned i = 0; i < 4; i++)
            ours[count++] = &sandbox->ends[i];
    }
    for (unsigned i = 0; i < sandbox->spec.groups; i++)
        ours[count++] = &sandbox->procs[i];
    if (sandbox->spec.groups == 0)
        ours[count++] = &sandbox->processes;
    sandbox->root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    sandbox->workspace = open("/workspace", O_PATH | O_DIRECTORY | O_CLOEXEC);
    auto_fd nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (sandbox->root < 0 || sandbox->workspace < 0 || nothing < 0)
        return fail_os(err, "open the sandbox's own folders");

    for (unsigned i = 0; i < count; i++)
        if (*ours[i] >= AWAY)
            return fail(err, ERR_INTERNAL, "descriptor %d is where others are put", *ours[i]);
    for (unsigned i = 0; i < count; i++) /* first to high numbers, so that none is overwritten */
        if (keep(ours[i], AWAY + (int) i, err) < 0)
            return -1;
    for (int i = 0; i < 3; i++)
        if (dup2(nothing, i) < 0)
            return fail_os(err, "open '/dev/null' as descriptor %d", i);
    for (unsigned i = 0; i < count; i++)
        if (keep(ours[i], 3 + (int) i, err) < 0)
            return -1;
    if (syscall(SYS_close_range, 3 + count, ~0U, 0) < 0)
        return fail_os(err, "close descriptors");
    /* NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): its end would close another descriptor */
    nothing = -1;
    return 0;
}

int limit_use_to(const struct sandbox *sandbox, uint32_t open_files, error *err)
{
    struct resource_limits limits = {
        .open_files = open_files,
        .processes = sandbox->spec.processes,
        .disk_bytes = sandbox->spec.disk_bytes,
    };
    return limit_resources(&limits, err);
}

/* Init needs descriptors for its walls and for each program, which gets its own limit when it
 * starts. */
static int limit_use(struct sandbox *sandbox, error *err)
{
    uint32_t open_files = sandbox->spec.open_files;
    return limit_use_to(sandbox, open_files > FILES_OF_INIT ? open_files : FILES_OF_INIT, err);
}

static int drop(struct sandbox *sandbox, error *err)
{
    return drop_privileges(err);
}

static int forbid_new_privileges(struct sandbox *sandbox, error *err)
{
    return set_no_new_privs(err);
}

/* A process in a Landlock domain cannot read /proc/PID of processes outside of it, such as
 * interpreters. Where init has to count their memory it stays outside, and each program restricts
 * itself (program_start.c). */
static int limit_paths(struct sandbox *sandbox, error *err)
{
    bool has_loopback = sandbox->spec.network == SPAWN_NETWORK_LOOPBACK;
    int asked = sandbox->spec.groups == 0 ? ask_landlock(&sandbox->landlock_abi, err)
                                          : limit_files(has_loopback, &sandbox->landlock_abi, err);
    if (asked < 0)
        return -1;
    if (sandbox->landlock_abi == 0)
        sandbox->degraded |= 1ULL << WALL_landlock;
    return 0;
}

/* Programs cannot open /proc/1/mem, fd or environ, nor trace init (ptrace(2), PTRACE_MODE_READ). */
static int hide_memory(struct sandbox *sandbox, error *err)
{
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return fail_os(err, "hide the memory of init");
    return 0;
}

static int limit_calls(struct sandbox *sandbox, error *err)
{
    return limit_syscalls(sandbox->filter->code, sandbox->filter->instructions, &sandbox->listener,
                          err);
}

/* clang-format off */
static const struct step {
    const char *name;
    int (*take)(struct sandbox *, error *);
    enum wall wall; /* the wall that stands when the step is done; test builds can leave it out */
    bool is_wall;
} recipe[] = {
    { "take the inside id",   take_inside_id,         WALL_userns,          true  },
    { "own group view",       own_group_view,         WALL_cgroupns,        true  },
    { "name the host",        name_host,              WALL_utsns,           true  },
    { "forbid namespaces",    bound_user_namespace,   WALL_no_userns,       true  }, /* needs the fork server's /proc */
    { "mount scratch",        mount_scratch,          WALL_private_files,   true  },
    { "mount processes",      mount_processes,        WALL_masked_proc,     true  },
    { "mount terminals",      mount_terminals,        WALL_minimal_dev,     false },
    { "raise loopback",       raise_loopback,         WALL_netns,           true  },
    { "close descriptors",    close_descriptors,      WALL_descriptors,     false }, /* programs close theirs again */
    { "open egress",          open_egress_listeners,           WALL_netns,           false }, /* ports below 1024 */
    { "limit resources",      limit_use,              WALL_rlimits,         true  },
    { "drop privileges",      drop,                   WALL_no_capabilities, true  },
    { "no new privileges",    forbid_new_privileges,  WALL_no_new_privs,    true  },
    { "hide memory",          hide_memory,            WALL_not_dumpable,    true  },
    { "limit files",          limit_paths,            WALL_landlock,        true  }, /* needs no_new_privs */
    { "limit system calls",   limit_calls,            WALL_seccomp,         true  },
};
/* clang-format on */

/* Walls that stand by the way the sandbox was cloned, or by how programs are started
 * (program_start.c). */
static const enum wall given[] = { WALL_mntns,       WALL_unique_uid,  WALL_pidns,
                                   WALL_ipcns,       WALL_minimal_dev, WALL_descriptors,
                                   WALL_environment, WALL_oom_score };

static bool is_disabled(const struct sandbox *sandbox, enum wall wall)
{
#ifdef GLOVEBOX_DISABLE_WALL
    return sandbox->spec.disabled_walls_low & (1U << wall);
#else
    return false;
#endif
}

#ifdef GLOVEBOX_DISABLE_WALL
static int stay_readable(struct sandbox *sandbox, error *err)
{
    return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 ? fail_os(err, "stay readable") : 0;
}

static int unbind_scratch(struct sandbox *sandbox, error *err)
{
    static const char options[] = "size=64g,nr_inodes=16777216";
    if (mount(NULL, "/workspace", NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV, options) < 0)
        return fail_os(err, "unbind the file system");
    return 0;
}
#endif

/* For test builds: opens a wall that does not fall just because its step is left out. */
static int breach(struct sandbox *sandbox, enum wall wall, error *err)
{
#ifdef GLOVEBOX_DISABLE_WALL
    if (wall == WALL_not_dumpable)
        return stay_readable(sandbox, err);
    if (wall == WALL_private_files)
        return unbind_scratch(sandbox, err);
#endif
    return 0;
}

/* Steps that others rely on are taken even when a test disables their wall. */
static bool is_skipped(const struct sandbox *sandbox, const struct step *step)
{
    if (!is_disabled(sandbox, step->wall))
        return false;
    return step->take != mount_scratch && step->take != raise_loopback &&
           step->take != open_egress_listeners && step->take != close_descriptors;
}

int build_sandbox(struct sandbox *sandbox, error *err)
{
    sandbox->listener = -1;
    for_each(step, recipe) {
        if (!is_skipped(sandbox, step) && step->take(sandbox, err) < 0)
            return under(err, "%s", step->name);
        if (is_disabled(sandbox, step->wall) && breach(sandbox, step->wall, err) < 0)
            return under(err, "%s left out", step->name);
        if (step->is_wall && !(sandbox->degraded & (1ULL << step->wall)))
            sandbox->walls |= 1ULL << step->wall;
    }
    for_each(wall, given)
        sandbox->walls |= 1ULL << *wall;
#ifdef GLOVEBOX_DISABLE_WALL
    sandbox->walls &= ~(uint64_t) sandbox->spec.disabled_walls_low;
#endif
    return 0;
}
