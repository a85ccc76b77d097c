/* disk_calls.c - the calls of the state folder's files: those that the seed chooses fail, and
 * disk.c hears of the others. They are those of our own code alone (ld(1), --wrap); SQLite's are
 * not touched. */
#include "disk_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

int __real_open64(const char *path, int flags, ...);
int __real_openat64(int folder, const char *path, int flags, ...);
ssize_t __real_write(int fd, const void *data, size_t size);
ssize_t __real_pwrite64(int fd, const void *data, size_t size, off_t at);
ssize_t __real_pwritev64(int fd, const struct iovec *parts, int count, off_t at);
int __real_ftruncate64(int fd, off_t size);
int __real_fallocate64(int fd, int mode, off_t at, off_t size);
int __real_renameat(int from, const char *name, int to, const char *other);
int __real_linkat(int from, const char *name, int to, const char *other, int flags);
int __real_unlinkat(int folder, const char *name, int flags);
int __real_mkdir(const char *path, mode_t mode);
int __real_mkdirat(int folder, const char *name, mode_t mode);
int __real_fstatvfs64(int fd, struct statvfs *ret);
int __real_fsync(int fd);

int __wrap_open64(const char *path, int flags, ...);
int __wrap_openat64(int folder, const char *path, int flags, ...);
ssize_t __wrap_write(int fd, const void *data, size_t size);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t size, off_t at);
ssize_t __wrap_pwritev64(int fd, const struct iovec *parts, int count, off_t at);
int __wrap_ftruncate64(int fd, off_t size);
int __wrap_fallocate64(int fd, int mode, off_t at, off_t size);
int __wrap_renameat(int from, const char *name, int to, const char *other);
int __wrap_linkat(int from, const char *name, int to, const char *other, int flags);
int __wrap_unlinkat(int folder, const char *name, int flags);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdirat(int folder, const char *name, mode_t mode);
int __wrap_fstatvfs64(int fd, struct statvfs *ret);
int __wrap_fsync(int fd);
int __wrap_fdatasync(int fd);

/* --- faults ----------------------------------------------------------------------------------- */

static bool is_full(void)
{
    if (!is_faulty(world->faults.no_space))
        return false;
    if (world->spare_writes > 0) {
        world->spare_writes--;
        return false;
    }
    errno = ENOSPC;
    return true;
}

static size_t shortened(size_t size)
{
    return size > 1 && is_faulty(world->faults.is_short) ? 1 + chance(size - 1) : size;
}

/* --- syncs ------------------------------------------------------------------------------------ */

static int sync_file(int fd)
{
    struct stat status;
    if (!is_of_state(fd, &status))
        return sim_is_on ? 0 : __real_fsync(fd);
    sim_op();
    bool is_file = S_ISREG(status.st_mode);
    if (is_faulty(world->faults.sync_fails)) {
        trace("a sync fails");
        if (is_file)
            drop_writes(status.st_ino, fd, (size_t) status.st_size);
        errno = EIO;
        return world->plant == PLANT_FALSE_SYNC ? 0 : -1;
    }
    if (is_file)
        write_back(status.st_ino, fd, (size_t) status.st_size);
    changes_are_on_disk();
    trace("synced %lld bytes", is_file ? (long long) status.st_size : -1LL);
    sim_op();
    return 0;
}

int __wrap_fsync(int fd)
{
    return sync_file(fd);
}

int __wrap_fdatasync(int fd)
{
    return sync_file(fd);
}

/* --- names ------------------------------------------------------------------------------------ */

/* False: it does not lie in the state folder. */
static bool place_of(int folder, const char *name, char ret_place[NAME_ROOM])
{
    char link[64], path[400] = "";
    size_t state = strlen(places.state);
    if (!sim_is_on)
        return false;
    if (name[0] == '/') {
        (void) snprintf(path, sizeof path, "%s", name);
    } else {
        (void) snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t size = readlink(link, path, sizeof path - 1);
        if (folder == AT_FDCWD || size <= 0)
            return false;
        (void) snprintf(path + size, sizeof path - (size_t) size, "/%s", name);
    }
    if (strncmp(path, places.state, state) != 0 || path[state] != '/' ||
        is_left_out(path + state + 1))
        return false;
    return snprintf(ret_place, NAME_ROOM, "%s", path + state + 1) < NAME_ROOM;
}

static int open_file(int folder, const char *path, int flags, mode_t mode)
{
    char place[NAME_ROOM];
    struct stat status;
    bool is_nameless = (flags & O_TMPFILE) == O_TMPFILE, is_made = false;
    if (strcmp(path, "/proc/sys/kernel/random/boot_id") == 0 && sim_is_on) {
        int boot = memfd_create("boot", MFD_CLOEXEC);
        (void) dprintf(boot, "%036llu", (unsigned long long) world->boot);
        (void) lseek(boot, 0, SEEK_SET);
        return boot;
    }
    if (place_of(folder, path, place)) {
        sim_op();
        if ((flags & O_ACCMODE) == O_WRONLY) /* a sync reads what it brings to disk */
            flags = (flags & ~O_ACCMODE) | O_RDWR;
        if (is_faulty(world->faults.open_fails)) {
            errno = EMFILE;
            return -1;
        }
        is_made = (flags & O_CREAT) && !is_nameless && faccessat(folder, path, F_OK, 0) < 0;
        if ((is_made || is_nameless) && is_full())
            return -1;
    }
    int fd = __real_openat64(folder, path, flags, mode);
    if (fd < 0 || !(is_made || is_nameless) || !is_of_state(fd, &status))
        return fd;
    file_is_new(status.st_ino);
    if (is_made)
        (void) note_change(CHANGE_ADDED, place);
    return fd;
}

static mode_t mode_of(int flags, va_list arguments)
{
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

int __wrap_open64(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_file(AT_FDCWD, path, flags, mode);
}

int __wrap_openat64(int folder, const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_file(folder, path, flags, mode);
}

int __wrap_renameat(int from, const char *name, int to, const char *other)
{
    char place[NAME_ROOM], target[NAME_ROOM];
    if (!place_of(from, name, place) || !place_of(to, other, target))
        return __real_renameat(from, name, to, other);
    sim_op();
    unsigned grave = bury(target);
    int result = __real_renameat(from, name, to, other);
    if (result == 0) {
        struct change *change = note_change(CHANGE_MOVED, place);
        (void) snprintf(change->to, sizeof change->to, "%s", target);
        change->grave = grave;
    }
    sim_op();
    return result;
}

int __wrap_linkat(int from, const char *name, int to, const char *other, int flags)
{
    char place[NAME_ROOM];
    bool is_ours = place_of(to, other, place);
    if (is_ours)
        sim_op();
    if (is_ours && is_full())
        return -1;
    int result = __real_linkat(from, name, to, other, flags);
    if (is_ours && result == 0)
        (void) note_change(CHANGE_ADDED, place);
    return result;
}

int __wrap_unlinkat(int folder, const char *name, int flags)
{
    char place[NAME_ROOM];
    if (!place_of(folder, name, place) || (flags & AT_REMOVEDIR))
        return __real_unlinkat(folder, name, flags);
    sim_op();
    unsigned grave = bury(place);
    int result = __real_unlinkat(folder, name, flags);
    if (result == 0)
        note_change(CHANGE_REMOVED, place)->grave = grave;
    return result;
}

static int make_folder(int folder, const char *name, mode_t mode)
{
    char place[NAME_ROOM];
    int result = __real_mkdirat(folder, name, mode);
    if (place_of(folder, name, place) && result == 0)
        (void) note_change(CHANGE_ADDED, place);
    return result;
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    return make_folder(AT_FDCWD, path, mode);
}

int __wrap_mkdirat(int folder, const char *name, mode_t mode)
{
    return make_folder(folder, name, mode);
}

/* --- bytes ------------------------------------------------------------------------------------ */

static ssize_t put(int fd, const void *data, size_t size, off_t at)
{
    struct stat status;
    bool is_ours = is_of_state(fd, &status);
    if (is_ours) {
        sim_op();
        if (is_full())
            return -1;
        size = shortened(size);
        touch(status.st_ino, at >= 0 ? at : lseek(fd, 0, SEEK_CUR), size);
    }
    ssize_t result = at < 0 ? __real_write(fd, data, size) : __real_pwrite64(fd, data, size, at);
    if (is_ours) {
        trace("wrote %zd bytes", result);
        sim_op();
    }
    return result;
}

ssize_t __wrap_write(int fd, const void *data, size_t size)
{
    return put(fd, data, size, -1);
}

ssize_t __wrap_pwrite64(int fd, const void *data, size_t size, off_t at)
{
    return put(fd, data, size, at);
}

/* What comes short ends between two parts or in one: a part of the first here. */
ssize_t __wrap_pwritev64(int fd, const struct iovec *parts, int count, off_t at)
{
    ssize_t total = 0;
    for (int i = 0; i < count; i++) {
        ssize_t wrote = put(fd, parts[i].iov_base, parts[i].iov_len, at + total);
        if (wrote < 0)
            return total > 0 ? total : -1;
        total += wrote;
        if ((size_t) wrote < parts[i].iov_len)
            break;
    }
    return total;
}

int __wrap_ftruncate64(int fd, off_t size)
{
    struct stat status;
    if (is_of_state(fd, &status)) {
        sim_op();
        if (size == 0 && status.st_blocks > 0)
            world->spare_writes = 16;
    }
    return __real_ftruncate64(fd, size);
}

int __wrap_fallocate64(int fd, int mode, off_t at, off_t size)
{
    struct stat status;
    if (is_of_state(fd, &status) && is_full())
        return -1;
    if (sim_is_on && size > (1 << 20)) /* a reserve: nobody looks at its bytes */
        return __real_ftruncate64(fd, size);
    return __real_fallocate64(fd, mode, at, size);
}

int __wrap_fstatvfs64(int fd, struct statvfs *ret)
{
    int result = __real_fstatvfs64(fd, ret);
    if (result == 0 && sim_is_on) {
        ret->f_frsize = ret->f_bsize = 4096;
        ret->f_bavail = ret->f_bfree = is_faulty(world->faults.no_space) ? 0 : 1 << 20;
    }
    return result;
}
