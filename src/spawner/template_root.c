/* template_root.c - makes the template the root of a new fork server, before it executes
 * glovebox-init. It already has a user, mount and pid namespace of its own, so that nothing here
 * uses a privilege of the host. Sandboxes inherit its mounts locked (mount_namespaces(7), "locked
 * mounts"). */
#include "base/cleanup.h"
#include "base/table.h"
#include "spawner/spawner.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

/* Where the new root is mounted: a folder that every host has. Only this process sees the mount. */
static const char site[] = "/tmp";

/* A private copy of the template's mount, read-only, without set-user-id programs and devices.
 * Other mounts that lie below the folder on the host do not come along (no AT_RECURSIVE). The
 * working directory is the template's (fork_servers.c). */
static int mount_template(error *err)
{
    auto_fd tree =
        (int) syscall(SYS_open_tree, AT_FDCWD, "root", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (tree < 0)
        return fail_os(err, "open the template");
    struct mount_attr attributes = {
        .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
    };
    if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attributes, sizeof attributes) < 0)
        return fail_os(err, "make the template read-only");
    if (syscall(SYS_move_mount, tree, "", AT_FDCWD, site, MOVE_MOUNT_F_EMPTY_PATH) < 0 ||
        chdir(site) < 0)
        return fail_os(err, "mount the template");
    return 0;
}

static const struct device {
    const char *host;
    const char *name;
    unsigned minor;
} devices[] = {
    { "/dev/null", "dev/null", 3 },       { "/dev/zero", "dev/zero", 5 },
    { "/dev/full", "dev/full", 7 },       { "/dev/random", "dev/random", 8 },
    { "/dev/urandom", "dev/urandom", 9 },
};

/* Binds the host's node after a check of its device number (CVE-2025-31133, CVE-2026-88265). */
static int bind_device(const struct device *device, error *err)
{
    auto_fd node = open(device->host, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;
    if (node < 0 || fstat(node, &status) < 0)
        return fail_os(err, "open device '%s'", device->host);
    if (!S_ISCHR(status.st_mode) || status.st_rdev != makedev(1, device->minor))
        return fail(err, ERR_UNAVAILABLE, "'%s' is not character device 1:%u", device->host,
                    device->minor);
    auto_fd place = open(device->name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444);
    if (place < 0)
        return fail_os(err, "make '%s'", device->name);
    auto_fd tree =
        (int) syscall(SYS_open_tree, node, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (tree < 0 ||
        syscall(SYS_move_mount, tree, "", AT_FDCWD, device->name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return fail_os(err, "mount device '%s'", device->host);
    return 0;
}

static int mount_devices(const struct spawner *spawner, error *err)
{
    static const struct {
        const char *target, *name;
    } links[] = {
        { "/proc/self/fd", "dev/fd" },       { "/proc/self/fd/0", "dev/stdin" },
        { "/proc/self/fd/1", "dev/stdout" }, { "/proc/self/fd/2", "dev/stderr" },
        { "pts/ptmx", "dev/ptmx" },
    };
    static const char *const folders[] = { "dev/shm", "dev/pts" };

    if (spawner->disabled_walls & (1ULL << WALL_minimal_dev))
        return mount("/dev", "dev", NULL, MS_BIND | MS_REC, NULL) < 0 ? fail_os(err, "bind '/dev'")
                                                                      : 0;
    if (mount("tmpfs", "dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755,size=64k,nr_inodes=64") <
        0)
        return fail_os(err, "mount '/dev'");
    for_each(device, devices)
        if (bind_device(device, err) < 0)
            return -1;
    for_each(link, links)
        if (symlink(link->target, link->name) < 0)
            return fail_os(err, "link '%s'", link->name);
    for_each(folder, folders)
        if (mkdir(*folder, 0755) < 0)
            return fail_os(err, "make '%s'", *folder);
    if (mount(NULL, "dev", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC, NULL) <
        0)
        return fail_os(err, "make '/dev' read-only");
    return 0;
}

static int copy_file(int from, const char *name, int to, error *err)
{
    char block[8192];
    auto_fd in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    auto_fd out = in < 0 ? -1 : openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0555);
    if (out < 0)
        return fail_os(err, "copy '%s' for the zygote", name);
    ssize_t got;
    while ((got = read(in, block, sizeof block)) > 0)
        if (write(out, block, (size_t) got) != got)
            break;
    return got == 0 ? 0 : fail_os(err, "copy '%s' for the zygote", name);
}

/* Copies the zygote's files into a tmpfs of this fork server. */
static int mount_python(int python, error *err)
{
    static const char *const names[] = {
#define PYTHON_FILE(name) name,
#include "contract/python_files.def"
    };
    static const char place[] = "usr/lib/glovebox";
    if (python < 0)
        return 0;
    if (mount("tmpfs", place, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=4m,nr_inodes=64") < 0)
        return fail_os(err, "mount '/%s'; build the template again if it is an old one", place);
    auto_fd to = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (to < 0)
        return fail_os(err, "open '/%s'", place);
    for_each(name, names)
        if (copy_file(python, *name, to, err) < 0)
            return -1;
    if (mount(NULL, place, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) < 0)
        return fail_os(err, "make '/%s' read-only", place);
    return 0;
}

/* pivot_root(".", ".") mounts the old root on top of the new one, and umount2() detaches it. After
 * that no path leads to the host (pivot_root(2), notes). */
static int leave_host(const struct spawner *spawner, error *err)
{
    bool stays = spawner->disabled_walls & (1ULL << WALL_mntns);
    if (syscall(SYS_pivot_root, ".", stays ? "var" : ".") < 0)
        return fail_os(err, "pivot into the template");
    if ((!stays && umount2(".", MNT_DETACH) < 0) || chdir("/") < 0)
        return fail_os(err, "detach the host's files");
    return 0;
}

int enter_template_root(const struct spawner *spawner, error *err)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return fail_os(err, "make mounts private");
    if (mount_template(err) < 0 || mount_devices(spawner, err) < 0)
        return -1;
    /* The kernel lets sandboxes mount their /proc only if a complete one is visible here
     * (mount_too_revealing). It shows this pid namespace; sandboxes mount over it. */
    if (mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return fail_os(err, "mount '/proc'; the host's own /proc must be fully visible");
    return mount_python(spawner->python, err) < 0 ? -1 : leave_host(spawner, err);
}
