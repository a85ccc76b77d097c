/* scratch.c - the only writable file system: a tmpfs with exact limits of bytes and inodes, mounted
 * at five places. One file system, so that one disk limit holds for all. */
#include "init/init.h"

#include "base/cleanup.h"
#include "base/table.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    SKEL_DEPTH_MAX = 8,
    PATH_BYTES_MAX = 512,
    COPIED_MAX = 4096, /* bytes */
    ROOM_FOR_OURS = 8 << 20,
    INODES_FOR_OURS = 512
};

/* Where the file system is mounted first; the last bind mount hides it. */
static const char base[] = "/run";

static const struct place {
    const char *from;
    const char *to;
    mode_t mode;
} places[] = {
    { "/run/workspace", "/workspace", 0755 },
    { "/run/tmp", "/tmp", 01777 },
    { "/run/home", "/home/user", 0755 },
    { "/run/shm", "/dev/shm", 01777 },
    { "/run/run", "/run", 0755 }, /* last: hides the others' first names */
};

const char *const scratch_places[SCRATCH_PLACES] = { "workspace", "tmp", "home/user", "dev/shm",
                                                     "run" };

/* A folder of the template's skeleton, and its copy in the home. */
struct pair {
    int from, to;
    char path[PATH_BYTES_MAX]; /* of `from` */
    int depth;                 /* how many levels of folders may be below */
};

/* Copies a small file. For a larger one (a font cache, for example) it makes a symbolic link to the
 * template's file, which a program can read, or replace by its own: a copy would cost every sandbox
 * time and memory. */
static int prepare_file(const struct pair *folder, const char *name)
{
    char text[COPIED_MAX];
    auto_fd in = openat(folder->from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t got = in < 0 ? -1 : read(in, text, sizeof text);
    if (got < 0)
        return -1;
    if (got == sizeof text) {
        char target[PATH_BYTES_MAX + NAME_MAX + 1];
        (void) snprintf(target, sizeof target, "%s/%s", folder->path, name);
        return symlinkat(target, folder->to, name);
    }
    auto_fd out = openat(folder->to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return out >= 0 && write(out, text, (size_t) got) == got ? 0 : -1;
}

static int prepare_folder(const struct pair *folder);

/* NOLINTNEXTLINE(misc-no-recursion): bounded by depth */
static int prepare_inner(const struct pair *folder, const char *name)
{
    struct pair inner = { .depth = folder->depth - 1 };
    int length = snprintf(inner.path, sizeof inner.path, "%s/%s", folder->path, name);
    auto_fd from = openat(folder->from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (from < 0 || length >= (int) sizeof inner.path || mkdirat(folder->to, name, 0755) < 0)
        return -1;
    auto_fd to = openat(folder->to, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    inner.from = from;
    inner.to = to;
    return to < 0 ? -1 : prepare_folder(&inner);
}

/* The template is trusted; still no link is followed, and depth is bounded. */
static int prepare_folder(const struct pair *folder) // NOLINT(misc-no-recursion): bounded by depth
{
    _Alignas(struct listed) char entries[1024];
    for (;;) {
        long got = syscall(SYS_getdents64, folder->from, entries, sizeof entries);
        if (got <= 0)
            return (int) got;
        for_each_listed(entry, entries, got) {
            if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0)
                continue;
            if (entry->type == DT_REG && prepare_file(folder, entry->name) < 0)
                return -1;
            if (entry->type == DT_DIR && folder->depth > 0 &&
                prepare_inner(folder, entry->name) < 0)
                return -1;
        }
    }
}

static int fill_home(error *err)
{
    struct pair home = { .path = "/usr/share/glovebox/skel", .depth = SKEL_DEPTH_MAX };
    auto_fd skeleton = open(home.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (skeleton < 0)
        return 0; /* this template has none */
    auto_fd user = open("/home/user", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    home.from = skeleton;
    home.to = user;
    if (user < 0 || prepare_folder(&home) < 0)
        return fail_os(err, "prepare '/home/user'");
    return 0;
}

static int use_of_scratch(uint64_t *ret_bytes, uint64_t *ret_inodes, struct statfs *ret_all)
{
    if (statfs("/workspace", ret_all) < 0)
        return -1;
    *ret_bytes = (uint64_t) (ret_all->f_blocks - ret_all->f_bfree) * (uint64_t) ret_all->f_bsize;
    *ret_inodes = (uint64_t) (ret_all->f_files - ret_all->f_ffree);
    return 0;
}

/* Files of the skeleton are added to the limits: the program gets all that it was granted. */
static int set_bounds(struct sandbox *sandbox, error *err)
{
    struct statfs all;
    char options[96];
    if (use_of_scratch(&sandbox->base_bytes, &sandbox->base_inodes, &all) < 0)
        return fail_os(err, "measure '/workspace'");
    (void) snprintf(options, sizeof options, "size=%llu,nr_inodes=%llu",
                    (unsigned long long) sandbox->spec.disk_bytes + sandbox->base_bytes,
                    (unsigned long long) sandbox->spec.inodes + sandbox->base_inodes);
    if (mount(NULL, "/workspace", NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV, options) < 0)
        return fail_os(err, "bound the file system to %s", options);
    return 0;
}

int mount_scratch(struct sandbox *sandbox, error *err)
{
    char options[96];
    (void) snprintf(options, sizeof options, "mode=0755,size=%llu,nr_inodes=%llu",
                    (unsigned long long) sandbox->spec.disk_bytes + ROOM_FOR_OURS,
                    (unsigned long long) sandbox->spec.inodes + INODES_FOR_OURS);
    if (mount("tmpfs", base, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
        return fail_os(err, "mount tmpfs on '%s'", base);
    for_each(place, places)
        if (mkdir(place->from, place->mode) < 0 || chmod(place->from, place->mode) < 0)
            return fail_os(err, "make '%s'", place->from);
    for_each(place, places)
        if (mount(place->from, place->to, NULL, MS_BIND, NULL) < 0)
            return fail_os(err, "bind '%s'; build the template again if it is an old one",
                           place->to);
    if (fill_home(err) < 0 || set_bounds(sandbox, err) < 0)
        return -1;
    return chdir("/workspace") < 0 ? fail_os(err, "enter '/workspace'") : 0;
}

static uint64_t above(uint64_t value, uint64_t start)
{
    return value > start ? value - start : 0;
}

void measure_scratch(struct sandbox *sandbox)
{
    struct statfs all;
    uint64_t bytes, inodes;
    struct agent_measured *now = &sandbox->measured;
    if (use_of_scratch(&bytes, &inodes, &all) < 0)
        return;
    now->disk_bytes = above(bytes, sandbox->base_bytes);
    now->inodes = above(inodes, sandbox->base_inodes);
    if (now->disk_bytes > now->disk_peak_bytes)
        now->disk_peak_bytes = now->disk_bytes;
    if (now->inodes > now->inodes_peak)
        now->inodes_peak = now->inodes;
    if (all.f_bfree == 0)
        now->disk_was_full = 1;
    if (all.f_ffree == 0)
        now->inodes_were_full = 1;
}
