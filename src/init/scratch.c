/* scratch.c - the one file system that can be written: a tmpfs with exact bounds on bytes and
 * inodes, seen at five places. One file system, so that the disk limit is one limit. */
#include "init/init.h"

#include "base/cleanup.h"
#include "base/table.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SKEL_DEPTH_MOST = 8, ROOM_FOR_OURS = 8 << 20, INODES_FOR_OURS = 512 };

/* Where the file system is mounted first; the last bind covers it. */
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

static int copy_file(int from, int to, const char *name)
{
    char block[8192];
    auto_fd in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    auto_fd out = in < 0 ? -1 : openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (out < 0)
        return -1;
    for (;;) {
        ssize_t got = read(in, block, sizeof block);
        if (got <= 0)
            return (int) got;
        if (write(out, block, (size_t) got) != got)
            return -1;
    }
}

/* Copies what the template has prepared for a home (a font cache, for example). The template is
 * ours; still no link is followed, and depth is bounded. */
static int copy_folder(int from, int to, int depth) // NOLINT(misc-no-recursion): bounded by depth
{
    _Alignas(struct listed) char entries[1024];
    for (;;) {
        long got = syscall(SYS_getdents64, from, entries, sizeof entries);
        if (got <= 0)
            return (int) got;
        for (long at = 0; at < got;) {
            const struct listed *entry = (const struct listed *) (entries + at);
            at += entry->length;
            if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0)
                continue;
            if (entry->type == DT_REG && copy_file(from, to, entry->name) < 0)
                return -1;
            if (entry->type != DT_DIR || depth == 0)
                continue;
            auto_fd inner =
                openat(from, entry->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (inner < 0 || mkdirat(to, entry->name, 0755) < 0)
                return -1;
            auto_fd copy = openat(to, entry->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            if (copy < 0 || copy_folder(inner, copy, depth - 1) < 0)
                return -1;
        }
    }
}

static int fill_home(error *err)
{
    auto_fd skeleton = open("/usr/share/glovebox/skel", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (skeleton < 0)
        return 0; /* this template has none */
    auto_fd home = open("/home/user", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (home < 0 || copy_folder(skeleton, home, SKEL_DEPTH_MOST) < 0)
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

/* What we have put there ourselves is added to the bounds: the program gets all that it was
 * granted. */
static int set_bounds(struct sandbox *sandbox, error *err)
{
    struct statfs all;
    char options[96];
    if (use_of_scratch(&sandbox->base_bytes, &sandbox->base_inodes, &all) < 0)
        return fail_os(err, "measure '/workspace'");
    (void) snprintf(options, sizeof options, "size=%llu,nr_inodes=%llu",
                    (unsigned long long) (sandbox->spec.disk_bytes + sandbox->base_bytes),
                    (unsigned long long) (sandbox->spec.inodes + sandbox->base_inodes));
    if (mount(NULL, "/workspace", NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV, options) < 0)
        return fail_os(err, "bound the file system to %s", options);
    return 0;
}

int mount_scratch(struct sandbox *sandbox, error *err)
{
    char options[96];
    (void) snprintf(options, sizeof options, "mode=0755,size=%llu,nr_inodes=%llu",
                    (unsigned long long) (sandbox->spec.disk_bytes + ROOM_FOR_OURS),
                    (unsigned long long) (sandbox->spec.inodes + INODES_FOR_OURS));
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
    if (chdir("/workspace") < 0)
        return fail_os(err, "enter '/workspace'");
    return 0;
}

static uint64_t above(uint64_t value, uint64_t start)
{
    return value > start ? value - start : 0;
}

void measure_scratch(struct sandbox *sandbox)
{
    struct statfs all;
    uint64_t bytes;
    uint64_t inodes;
    struct inside_measured *now = &sandbox->measured;
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
