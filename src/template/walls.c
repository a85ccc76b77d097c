/* walls.c - confines the child, from clone(2) to the filter. A step that fails prints a message and
 * ends the child; walls_raise() has the order. */
#include "template/walls.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "supervisor/install_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

enum { BINDS_MAX = 24, INSTRUCTIONS_MAX = 4096 };

/* The filter of the next child; one thread. */
static struct sock_filter filter[INSTRUCTIONS_MAX];
static unsigned instructions;

/* Where the new root is mounted: a folder that every host has. Only this process sees the mount. */
static const char site[] = "/tmp";

int walls_load(const struct walls *walls, error *err)
{
    auto_text path = NULL;
    const char *name = walls->has_network ? "seccomp/loopback.bpf" : "seccomp/default.bpf";
    if (path_of_data(name, &path, err) < 0)
        return under(err, "load the system call filter");
    auto_fd file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? -1 : read(file, filter, sizeof filter);
    if (size < 0)
        return fail_os(err, "load the system call filter '%s'", path);
    instructions = (unsigned) ((size_t) size / sizeof filter[0]);
    if (instructions == 0 || instructions == INSTRUCTIONS_MAX)
        return fail(err, ERR_UNAVAILABLE, "'%s' is no system call filter; install it again", path);
    /* In a build, refused calls have no listener, and just fail. */
    for (unsigned i = 0; i < instructions; i++)
        if (filter[i].code == (BPF_RET | BPF_K) &&
            (filter[i].k & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_USER_NOTIF)
            filter[i].k = SECCOMP_RET_ERRNO | EPERM;
    return 0;
}

unsigned long walls_namespaces(const struct walls *walls)
{
    return CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
           (walls->has_network ? 0UL : CLONE_NEWNET);
}

/* Prints one line to stderr, the parent's pipe, and ends the child. */
static _Noreturn void give_up(const char *what, const char *which)
{
    const char *why = strerrordesc_np(errno);
    (void) dprintf(STDERR_FILENO, "%s%s: %s\n", what, which, why ? why : "unknown error");
    _exit(126);
}

/* Makes a detached copy of a mount; of a read-only one with all mounts below it, since a user
 * namespace may not separate /usr from /usr/local. Ignores devices and set-user-id programs. */
static int take_place(const char *path, bool writable, bool is_device)
{
    unsigned below = writable ? 0 : AT_RECURSIVE, made = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC;
    int place = (int) syscall(SYS_open_tree, AT_FDCWD, path, made | below);
    struct mount_attr attributes = {
        .attr_set = MOUNT_ATTR_NOSUID | (is_device ? 0ULL : MOUNT_ATTR_NODEV) |
                    (writable ? 0ULL : MOUNT_ATTR_RDONLY),
    };
    const size_t size = sizeof attributes;
    if (place < 0 ||
        syscall(SYS_mount_setattr, place, "", AT_EMPTY_PATH | below, &attributes, size) < 0)
        give_up("take ", path);
    return place;
}

static void put_place(int place, const char *target)
{
    if (syscall(SYS_move_mount, place, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        give_up("mount ", target);
    (void) close(place);
}

/* Makes the target of a bind mount, a folder or a file like its source, and folders above it. */
static void make_target(int place, const char *target)
{
    char path[256];
    struct stat status;
    (void) snprintf(path, sizeof path, "%s", target);
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void) mkdir(path, 0755);
        *slash = '/';
    }
    if (fstat(place, &status) < 0)
        give_up("look at ", target);
    if (S_ISDIR(status.st_mode))
        (void) mkdir(path, 0755);
    else
        (void) close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
}

/* The parts of the host that will be visible. Opened with the caller's id, which may enter folders
 * that the build's id may not, and before anything is mounted over them. */
struct taken {
    size_t count, binds; /* `binds` of the caller come last */
    struct {
        int place;
        const char *target;
    } list[BINDS_MAX];
};

static const char *const programs[] = {
    "usr", "bin", "sbin", "lib", "lib32", "lib64", "etc/alternatives", "etc/ld.so.cache",
};

static void take(struct taken *taken, const char *path, bool writable, const char *target)
{
    if (taken->count == BINDS_MAX)
        _exit(126);
    taken->list[taken->count].place = take_place(path, writable, false);
    taken->list[taken->count++].target = target;
}

static void take_places(const struct walls *walls, struct taken *taken)
{
    char path[64];
    struct stat status;
    if (walls->root)
        take(taken, walls->root, true, "");
    for_each(program, programs) {
        (void) snprintf(path, sizeof path, "/%s", *program);
        if (!walls->root && lstat(path, &status) == 0 && !S_ISLNK(status.st_mode))
            take(taken, path, false, *program);
    }
    taken->binds = taken->count;
    for (const struct walls_bind *bind = walls->binds; bind && bind->from; bind++)
        take(taken, bind->from, bind->writable, bind->to);
}

static void put_places(const struct taken *taken, size_t first, size_t end)
{
    for (size_t index = first; index < end; index++) {
        make_target(taken->list[index].place, taken->list[index].target);
        put_place(taken->list[index].place, taken->list[index].target);
    }
}

/* Makes a root with the host's programs, read-only. */
static void make_bench(const struct taken *taken)
{
    static const char *const folders[] = { "dev", "proc", "tmp" };
    char path[64], link[64];
    if (mount("tmpfs", site, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=16m") < 0 ||
        chdir(site) < 0)
        give_up("make a root", "");
    for_each(program, programs) { /* merged /usr: /bin is a link to usr/bin */
        (void) snprintf(path, sizeof path, "/%s", *program);
        ssize_t size = readlink(path, link, sizeof link - 1);
        link[size > 0 ? size : 0] = '\0';
        if (size > 0 && symlink(link, *program) < 0)
            give_up("make ", *program);
    }
    put_places(taken, 0, taken->binds);
    for_each(folder, folders)
        if (mkdir(*folder, 0755) < 0)
            give_up("make ", *folder);
}

/* A user namespace cannot make devices, so harmless ones of the host are bound. */
static void bind_devices(void)
{
    static const char *const devices[] = { "null", "zero", "full", "random", "urandom" };
    int taken[COUNT_OF(devices)];
    char path[32];
    for (size_t index = 0; index < COUNT_OF(devices); index++) {
        (void) snprintf(path, sizeof path, "/dev/%s", devices[index]);
        taken[index] = take_place(path, true, true);
    }
    if (mount("tmpfs", "dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755,size=64k,nr_inodes=64") <
            0 ||
        mkdir("dev/shm", 0755) < 0)
        give_up("mount ", "/dev");
    for (size_t index = 0; index < COUNT_OF(devices); index++) {
        (void) snprintf(path, sizeof path, "dev/%s", devices[index]);
        (void) close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
        put_place(taken[index], path);
    }
    if (symlink("/proc/self/fd", "dev/fd") < 0 ||
        mount("tmpfs", "dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=64m") < 0 ||
        mount(NULL, "dev", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC, NULL) <
            0)
        give_up("furnish ", "/dev");
}

/* Leaves the host's root and detaches it: nothing of the host is visible then (pivot_root(2)). */
static void leave_host(void)
{
    if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        give_up("leave the host's files", "");
}

static void take_ids(void)
{
    /* EPERM: where a single id is mapped, setgroups(2) is denied. */
    if ((syscall(SYS_setgroups, 0, NULL) < 0 && errno != EPERM) ||
        syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0)
        give_up("take the ids of the build", "");
}

static void enter_root(const struct walls *walls)
{
    struct taken taken = { .count = 0 };
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        give_up("stand apart from the host's mounts", "");
    take_places(walls, &taken);
    take_ids(); /* only ids that are mapped can own files */
    if (walls->root) {
        put_place(taken.list[0].place, site);
        if (chdir(site) < 0)
            give_up("enter ", walls->root);
    } else {
        make_bench(&taken);
    }
    bind_devices();
    /* subset=pid leaves out /proc/sys and everything else that is not a process. In a container the
     * kernel may refuse a new /proc; builds can do without. */
    (void) mount("proc", "proc", "proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
                 "subset=pid,hidepid=invisible");
    if (mount("tmpfs", "tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=1g,nr_inodes=64k") < 0)
        give_up("mount ", "/tmp");
    put_places(&taken, taken.binds, taken.count);
    leave_host();
}

/* Without capabilities uid 0 is just the owner of the tree. dpkg needs to change owners and ids;
 * its capabilities apply only in its own user namespace. */
static void limit_capabilities(bool keeps_owners)
{
    static const unsigned for_owners[] = { CAP_CHOWN,  CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH,
                                           CAP_FOWNER, CAP_FSETID,       CAP_SETFCAP,
                                           CAP_SETGID, CAP_SETUID,       CAP_KILL };
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct sets[2] = { { 0 } };
    unsigned long long kept = 0;
    for_each(capability, for_owners)
        kept |= keeps_owners ? 1ULL << *capability : 0;
    if (!keeps_owners && prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED) < 0)
        give_up("lock the secure bits", "");
    for (unsigned i = 0; i < 64; i++)
        if (!(kept & 1ULL << i) && prctl(PR_CAPBSET_DROP, i, 0, 0, 0) < 0 && errno != EINVAL)
            give_up("drop capabilities", "");
    sets[0].effective = sets[0].permitted = (unsigned) kept;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_capset, &header, sets) < 0)
        give_up("drop capabilities", "");
}

/* Limited only without a control group for memory: some programs reserve far more than they use. */
static void limit_resources(bool has_group)
{
    rlim_t memory = has_group ? RLIM_INFINITY : (rlim_t) BUILD_MEMORY_MIB << 20;
    /* RLIMIT_CORE is 1, not 0: a core_pattern that starts with a pipe runs a helper on the host
     * even at 0, and does not at 1 (core(5)). */
    const struct {
        __rlimit_resource_t resource;
        rlim_t max;
    } rows[] = {
        { RLIMIT_CORE, 1 },           { RLIMIT_NPROC, BUILD_PROCESSES },
        { RLIMIT_NOFILE, 4096 },      { RLIMIT_AS, memory },
        { RLIMIT_MEMLOCK, 8 << 20 },  { RLIMIT_MSGQUEUE, 64 << 10 },
        { RLIMIT_SIGPENDING, 1024 },  { RLIMIT_RTPRIO, 0 },
        { RLIMIT_FSIZE, 8ULL << 30 },
    };
    for_each(row, rows) {
        struct rlimit now;
        if (getrlimit(row->resource, &now) < 0)
            give_up("read resource limits", "");
        rlim_t max = row->max < now.rlim_max ? row->max : now.rlim_max;
        if (setrlimit(row->resource, &(struct rlimit){ .rlim_cur = max, .rlim_max = max }) < 0)
            give_up("limit resources", "");
    }
}

/* Sets the parent death signal again, which the change of ids has cleared. If the parent has ended
 * meanwhile, its end of `go` is closed: POLLHUP. */
static void end_with_parent(int go)
{
    struct pollfd parent = { .fd = go, .events = POLLIN };
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || poll(&parent, 1, 0) != 0)
        _exit(126);
}

void walls_raise(const struct walls *walls, int go)
{
    char byte;
    struct sock_fprog program = {
        .len = (unsigned short) instructions,
        .filter = filter,
    };
    if (read(go, &byte, 1) != 1)
        _exit(126);
    bool has_group = byte == WALLS_GO_IN_GROUP;
    if (unshare(CLONE_NEWCGROUP) < 0) /* so that the group set by the parent is shown as "/" */
        give_up("make a control group namespace", "");
    enter_root(walls);
    end_with_parent(go);
    if (setsid() < 0 && errno != EPERM)
        give_up("leave the terminal", "");
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
        give_up("leave the session's keyring", "");
    if (sethostname("glovebox", 8) < 0)
        give_up("name the host", "");
    limit_resources(has_group);
    limit_capabilities(walls->keeps_owners);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        give_up("install the system call filter", "");
}
