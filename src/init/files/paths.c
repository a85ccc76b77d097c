/* paths.c - resolves paths that a session gives. The kernel does it with the sandbox's own root as
 * root, so that no link and no ".." leads out. Init has no more rights than the program itself, so
 * a path reaches nothing that the program could not. */
#include "init/operations.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char workspace[] = "workspace";

struct whole_path {
    char text[AGENT_PATH_MAX + sizeof workspace + 2]; /* relative to the root */
};

static int refuse(error *err, int os, const char *path)
{
    errno = os;
    return fail_os(err, "path '%.100s'", path);
}

/* Writes the path relative to the root. No part of it is empty, "." or "..". */
static int whole_path_of(const char *path, struct whole_path *whole, error *err)
{
    size_t length = strlen(path);
    if (length > AGENT_PATH_MAX)
        return refuse(err, ENAMETOOLONG, path);
    for (const char *part = *path == '/' ? path + 1 : path; *part;) {
        size_t size = strcspn(part, "/");
        if (size == 0 || (size == 1 && *part == '.') || (size == 2 && strncmp(part, "..", 2) == 0))
            return refuse(err, EINVAL, path);
        part += size;
        if (*part == '/' && *++part == '\0')
            return refuse(err, EINVAL, path);
    }
    char *at = whole->text;
    if (*path != '/') {
        memcpy(at, workspace, sizeof workspace - 1);
        at += sizeof workspace - 1;
        if (*path)
            *at++ = '/';
    } else {
        path++;
        length--;
    }
    memcpy(at, path, length + 1);
    return 0;
}

static int open_inside(const struct sandbox *sandbox, const char *whole, int flags)
{
    struct open_how how = {
        .flags = (uint64_t) (unsigned) (flags | O_CLOEXEC),
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
    };
    return (int) syscall(SYS_openat2, sandbox->root, *whole ? whole : ".", &how, sizeof how);
}

/* Refuses /proc: there, init can open files of its own that programs may not see. */
static int check_is_no_process(int file)
{
    struct statfs where;
    if (fstatfs(file, &where) < 0)
        return -1;
    errno = EACCES;
    return where.f_type == PROC_SUPER_MAGIC ? -1 : 0;
}

int open_path(const struct sandbox *sandbox, const char *path, int flags, error *err)
{
    struct whole_path whole;
    if (whole_path_of(path, &whole, err) < 0)
        return -1;
    auto_fd file = open_inside(sandbox, whole.text, flags);
    if (file < 0)
        return fail_os(err, "open '%.100s'", path);
    if (check_is_no_process(file) < 0)
        return fail_os(err, "path '%.100s'", path);
    return take_fd(&file);
}

int open_inner(int folder, const char *name, int flags)
{
    auto_fd inner = openat(folder, name, flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return inner < 0 || check_is_no_process(inner) < 0 ? -1 : take_fd(&inner);
}

uint32_t mode_of_target(int folder, const char *name)
{
    struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS };
    auto_fd target = (int) syscall(SYS_openat2, folder, name, &how, sizeof how);
    struct stat status;
    if (target < 0 || check_is_no_process(target) < 0 || fstat(target, &status) < 0)
        return 0;
    return status.st_mode;
}

/* Makes the missing folders of a path from the root. `whole` ends before the last name. */
static int make_folders(const struct sandbox *sandbox, char *whole, error *err)
{
    auto_fd at = open_inside(sandbox, ".", O_PATH | O_DIRECTORY);
    char *name = whole;
    while (at >= 0 && *name) {
        char *slash = strchr(name, '/');
        if (slash)
            *slash = '\0';
        int inner = open_inside(sandbox, whole, O_PATH | O_DIRECTORY);
        if (inner < 0 && errno == ENOENT && mkdirat(at, name, 0755) == 0)
            inner = open_inside(sandbox, whole, O_PATH | O_DIRECTORY);
        if (inner < 0)
            return fail_os(err, "make folder '%.100s'", whole);
        (void) close(at);
        at = inner;
        if (!slash)
            break;
        *slash = '/';
        name = slash + 1;
    }
    return take_fd(&at);
}

int open_place(const struct sandbox *sandbox, const char *path, bool make, const char **ret_name,
               error *err)
{
    struct whole_path whole;
    if (whole_path_of(path, &whole, err) < 0)
        return -1;
    const char *slash = strrchr(path, '/');
    *ret_name = slash ? slash + 1 : path;
    if (**ret_name == '\0')
        return refuse(err, EINVAL, *path ? path : "/workspace");
    if (strlen(*ret_name) > NAME_MAX)
        return refuse(err, ENAMETOOLONG, path);
    char *last = strrchr(whole.text, '/');
    *(last ? last : whole.text) = '\0';
    auto_fd folder = open_inside(sandbox, whole.text, O_PATH | O_DIRECTORY);
    if (folder < 0 && errno == ENOENT && make) {
        folder = make_folders(sandbox, whole.text, err);
        if (folder < 0)
            return -1;
    }
    if (folder < 0)
        return fail_os(err, "open the folder of '%.100s'", path);
    if (check_is_no_process(folder) < 0)
        return fail_os(err, "path '%.100s'", path);
    return take_fd(&folder);
}
