/* beneath.c - openat2() guards: RESOLVE_BENEATH and no links, for every part of a path. */
#include "cli/common/beneath.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { PART_MAX = 255 };

static int open_beneath(int folder, const char *name, int flags, unsigned mode)
{
    struct open_how how = {
        .flags = (uint64_t) (flags | O_CLOEXEC),
        .mode = mode,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    return (int) syscall(SYS_openat2, folder, name, &how, sizeof how);
}

/* Opens the folder of a path, and makes missing ones. Leaves the last part in `path`. */
static int open_parents(int folder, const char **path, int *ret_folder, error *err)
{
    auto_fd here = fcntl(folder, F_DUPFD_CLOEXEC, 3);
    if (here < 0)
        return fail_os(err, "open the folder");
    for (const char *slash = strchr(*path, '/'); slash; slash = strchr(*path, '/')) {
        char part[PART_MAX + 1];
        int length = snprintf(part, sizeof part, "%.*s", (int) (slash - *path), *path);
        if (length <= 0 || length > PART_MAX || strcmp(part, ".") == 0 || strcmp(part, "..") == 0)
            return fail(err, ERR_PROTOCOL, "its path is not one");
        if (mkdirat(here, part, 0755) < 0 && errno != EEXIST)
            return fail_os(err, "make folder '%s'", part);
        int next = open_beneath(here, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
        if (next < 0)
            return fail_os(err, "open folder '%s'", part);
        close_fd(&here);
        here = next;
        *path = slash + 1;
    }
    *ret_folder = take_fd(&here);
    return 0;
}

int beneath_make_folder(int folder, const char *path, error *err)
{
    char whole[PATH_MAX];
    auto_fd made = -1;
    const char *rest = whole;
    if ((size_t) snprintf(whole, sizeof whole, "%s/", path) >= sizeof whole)
        return fail(err, ERR_PROTOCOL, "its path is too long");
    return open_parents(folder, &rest, &made, err);
}

int beneath_begin(struct beneath_file *file, int folder, const char *path, mode_t mode, error *err)
{
    const char *name = path;
    file->folder = file->fd = -1;
    if (open_parents(folder, &name, &file->folder, err) < 0)
        return -1;
    int result = 0;
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strlen(name) > PART_MAX)
        result = fail(err, ERR_PROTOCOL, "its path is not one");
    file->name = name;
    (void) snprintf(file->temporary, sizeof file->temporary, ".glovebox-%d", (int) getpid());
    if (result == 0) {
        (void) unlinkat(file->folder, file->temporary, 0);
        file->fd = open_beneath(file->folder, file->temporary,
                                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
        if (file->fd < 0)
            result = fail_os(err, "make a file");
    }
    if (result < 0)
        close_fd(&file->folder);
    return result;
}

int beneath_end(struct beneath_file *file, bool is_whole, error *err)
{
    int result = 0;
    if (is_whole && renameat(file->folder, file->temporary, file->folder, file->name) < 0)
        result = fail_os(err, "give it its name");
    if (!is_whole || result < 0)
        (void) unlinkat(file->folder, file->temporary, 0);
    close_fd(&file->fd);
    close_fd(&file->folder);
    return result;
}
