/* host_copy.c - makes a new root without a network, by copies of files of the host's own packages.
 *
 * Only files that dpkg lists are copied, and only from /usr and a few places of /etc: nothing that
 * belongs to this machine or to its users. Every file is a real copy with its own inode, since
 * shared files share the page cache. */
#include "template/build.h"

#include "base/auto_free.h"
#include "base/cleanup.h"
#include "base/table.h"
#include "template/approved.h"
#include "template/host_packages.h"
#include "template/tool.h"
#include "template/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 1024 }; /* no package has a longer one */

/* Paths to copy from; all others are left out. */
static const char *const copied[] = {
    /* clang-format off */
    "/usr/", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/debian_version", "/etc/ld.so.conf",
    "/etc/ld.so.conf.d/", "/etc/fonts/", "/etc/python3", "/etc/matplotlibrc", "/etc/mime.types", "/etc/services",
    "/etc/protocols", "/etc/os-release", "/etc/inputrc", "/etc/R/", "/etc/ssl/openssl.cnf"
    /* clang-format on */
};
static const char *const not_copied[] = {
    "/usr/local/",        "/usr/share/doc/",   "/usr/share/man/",     "/usr/share/info/",
    "/usr/share/locale/", "/usr/lib/modules/", "/usr/share/lintian/", "/usr/src/",
};

struct copying {
    struct build *build;
    char above_path[PATH_SIZE]; /* the directory that `above` is */
    int above;
    size_t files;
};

static bool starts_with_any(const char *path, const char *const *prefixes, size_t count)
{
    for (size_t index = 0; index < count; index++)
        if (strncmp(path, prefixes[index], strlen(prefixes[index])) == 0)
            return true;
    return false;
}

/* dpkg may list /bin/x for a file that is /usr/bin/x since the two were merged. */
static bool real_path(const char *path, char *real, size_t size)
{
    static const char *const merged[] = { "/bin/",   "/sbin/",  "/lib/",
                                          "/lib32/", "/lib64/", "/libx32/" };
    bool moves = false;
    for_each(prefix, merged) {
        char top[16];
        struct stat status;
        (void) snprintf(top, sizeof(top), "%.*s", (int) strlen(*prefix) - 1, *prefix);
        if (strncmp(path, *prefix, strlen(*prefix)) == 0)
            moves = lstat(top, &status) == 0 && S_ISLNK(status.st_mode);
    }
    return snprintf(real, size, "%s%s", moves ? "/usr" : "", path) < (int) size;
}

static int copy_bytes(int from, int to, off_t size)
{
    while (size > 0) {
        ssize_t moved = copy_file_range(from, NULL, to, NULL, (size_t) size, 0);
        if (moved < 0)
            moved = sendfile(to, from, NULL, (size_t) size);
        if (moved < 0 && errno == EINTR)
            continue;
        if (moved < 0)
            return -1;
        if (moved == 0)
            break;
        size -= moved;
    }
    return 0;
}

static int copy_file(const char *path, int above, const char *name, const struct stat *status,
                     error *err)
{
    auto_fd from = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (from < 0 && (errno == EACCES || errno == EPERM))
        return 0; /* files that this user may not read are left out */
    auto_fd to = from < 0
                     ? -1
                     : openat(above, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                              status->st_mode & 0755);
    if (to < 0 && errno == EEXIST)
        return 0; /* two packages list it */
    struct timespec times[2] = { status->st_mtim, status->st_mtim };
    if (from < 0 || to < 0 || copy_bytes(from, to, status->st_size) < 0 || futimens(to, times) < 0)
        return fail_os(err, "copy '%.150s'", path);
    return 0;
}

static int copy_link(const char *path, int above, const char *name, error *err)
{
    char target[PATH_SIZE];
    ssize_t length = readlink(path, target, sizeof(target) - 1);
    if (length < 0)
        return fail_os(err, "read link '%.150s'", path);
    target[length] = '\0';
    if (symlinkat(target, above, name) < 0 && errno != EEXIST)
        return fail_os(err, "copy link '%.150s'", path);
    return 0;
}

/* Opens the directory of a path. Returns 1 if a part of the path is a link: skip it. */
static int stand_above(struct copying *copying, const char *path, error *err)
{
    char above[PATH_SIZE];
    const char *slash = strrchr(path, '/');
    (void) snprintf(above, sizeof(above), "%.*s", slash == path ? 1 : (int) (slash - path - 1),
                    slash == path ? "." : path + 1);
    if (copying->above >= 0 && strcmp(above, copying->above_path) == 0)
        return 0;
    if (copying->above >= 0)
        (void) close(take_fd(&copying->above));
    copying->above = tree_open(copying->build->root, above, O_RDONLY | O_DIRECTORY);
    if (copying->above < 0 && errno == ENOENT) {
        error ignored;
        if (tree_make_directory(copying->build->root, above, &ignored) == 0)
            copying->above = tree_open(copying->build->root, above, O_RDONLY | O_DIRECTORY);
    }
    if (copying->above < 0)
        return errno == ELOOP || errno == ENOTDIR ? 1 : fail_os(err, "open '%.150s'", above);
    (void) snprintf(copying->above_path, sizeof(copying->above_path), "%s", above);
    return 0;
}

static int copy_path(struct copying *copying, const char *listed, error *err)
{
    char path[PATH_SIZE];
    struct stat status;
    if (!starts_with_any(listed, copied, COUNT_OF(copied)) ||
        starts_with_any(listed, not_copied, COUNT_OF(not_copied)) ||
        !real_path(listed, path, sizeof(path)) || lstat(path, &status) < 0)
        return 0; /* lstat: documentation may have been left out on the host too */
    int result = stand_above(copying, path, err);
    if (result != 0)
        return result < 0 ? -1 : 0;
    const char *name = strrchr(path, '/') + 1;
    if (S_ISDIR(status.st_mode)) {
        if (mkdirat(copying->above, name, 0755) < 0 && errno != EEXIST)
            return fail_os(err, "make directory '%.150s'", path);
        return 0;
    }
    if (++copying->files % 1000 == 0) {
        char text[64];
        (void) snprintf(text, sizeof(text), "copied %zu files", copying->files);
        build_says(copying->build, text);
    }
    if (S_ISLNK(status.st_mode))
        return copy_link(path, copying->above, name, err);
    return S_ISREG(status.st_mode) ? copy_file(path, copying->above, name, &status, err) : 0;
}

static int make_link(struct copying *copying, const char *path, const char *target, error *err)
{
    char real[PATH_SIZE];
    if (!real_path(path, real, sizeof(real)))
        return 0;
    int result = stand_above(copying, real, err);
    if (result != 0)
        return result < 0 ? -1 : 0;
    if (symlinkat(target, copying->above, strrchr(real, '/') + 1) < 0 && errno != EEXIST)
        return fail_os(err, "link '%.150s'", path);
    return 0;
}

/* Copies an alternative of update-alternatives(1): LINK -> /etc/alternatives/NAME -> the choice. */
static int copy_choice(struct copying *copying, const char *name, const char *link, error *err)
{
    char managed[PATH_SIZE], target[PATH_SIZE], real[PATH_SIZE];
    struct stat status;
    (void) snprintf(managed, sizeof(managed), "/etc/alternatives/%.200s", name);
    ssize_t length = readlink(managed, target, sizeof(target) - 1);
    if (length <= 0 || strchr(name, '/') || !starts_with_any(link, copied, COUNT_OF(copied)))
        return 0;
    target[length] = '\0';
    if (!real_path(target, real, sizeof(real)) || real[0] != '/' ||
        fstatat(copying->build->root, real + 1, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return 0; /* the package of the choice is not copied */
    if (make_link(copying, managed, target, err) < 0)
        return -1;
    return make_link(copying, link, managed, err);
}

static int copy_alternatives(struct copying *copying, error *err)
{
    auto_fd where = open("/var/lib/dpkg/alternatives", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int own = where < 0 ? -1 : fcntl(where, F_DUPFD_CLOEXEC, 3);
    DIR *directory = own < 0 ? NULL : fdopendir(own);
    if (!directory)
        return 0; /* a machine without alternatives */
    int result = 0;
    struct dirent *entry;
    while (result == 0 && (entry = readdir(directory))) { /* NOLINT(concurrency-mt-unsafe): ours */
        auto_text text = NULL;
        size_t size = 0;
        error ignored;
        if (*entry->d_name == '.' ||
            tree_read_file(where, entry->d_name, &text, &size, &ignored) < 0)
            continue;
        /* "auto", the link, then pairs of name and link of its slaves, then an empty line */
        char *rest = text;
        (void) strsep(&rest, "\n");
        const char *name = entry->d_name, *link = strsep(&rest, "\n");
        while (result == 0 && name && *name && link) {
            result = copy_choice(copying, name, link, err);
            name = strsep(&rest, "\n");
            link = strsep(&rest, "\n");
        }
    }
    (void) closedir(directory);
    return result;
}

static int want_all(struct build *build, struct host_packages *all, error *err)
{
    struct json_object *packages = build_key(build, "packages");
    for (size_t index = 0; index < json_object_array_length(packages); index++)
        if (host_packages_want(
                all, json_object_get_string(json_object_array_get_idx(packages, index)), err) < 0)
            return -1;
    for (size_t index = 0; index < json_object_array_length(build->approved); index++) {
        struct json_object *row = json_object_array_get_idx(build->approved, index);
        if (strcmp(approved_text(row, "manager"), "apt") == 0 &&
            host_packages_want(all, approved_text(row, "name"), err) < 0)
            return -1;
    }
    for (size_t index = 0; index < all->count; index++)
        if (all->packages[index].essential &&
            host_packages_want(all, all->packages[index].name, err) < 0)
            return -1;
    return 0;
}

/* Lists the files of all wanted packages, and notes their versions. */
static int list_files(struct build *build, const struct host_packages *all, char **ret_text,
                      error *err)
{
    char query[] = "dpkg-query", list[] = "-L";
    auto_free char **arguments = calloc(all->count + 3, sizeof(*arguments));
    if (!arguments)
        return fail(err, ERR_INTERNAL, "out of memory");
    size_t count = 0;
    arguments[count++] = query;
    arguments[count++] = list;
    for (size_t index = 0; index < all->count; index++) {
        const struct host_package *package = &all->packages[index];
        if (!package->wanted)
            continue;
        arguments[count++] = package->own_name;
        struct json_object *one = json_object_new_object();
        (void) json_object_object_add(one, "name", json_object_new_string(package->name));
        (void) json_object_object_add(one, "version", json_object_new_string(package->version));
        (void) json_object_array_add(build->packages, one);
    }
    struct tool tool = { .arguments = arguments };
    return tool_read(&tool, ret_text, err);
}

static int copy_all(struct build *build, const struct host_packages *all, error *err)
{
    auto_text text = NULL;
    if (list_files(build, all, &text, err) < 0)
        return under(err, "list the files of this machine's packages");
    struct copying copying = { .build = build, .above = -1 };
    char *rest = text;
    int result = 0;
    for (char *line = strsep(&rest, "\n"); result == 0 && line; line = strsep(&rest, "\n")) {
        if (tool_interrupted)
            result = fail(err, ERR_TIMEOUT, "interrupted");
        else if (line[0] == '/' && line[1] != '.')
            result = copy_path(&copying, line, err);
    }
    if (result == 0)
        result = copy_alternatives(&copying, err);
    close_fd(&copying.above);
    return result;
}

int unpack_host_copy(struct build *build, error *err)
{
    struct host_packages all;
    if (!tool_exists("dpkg-query"))
        return fail(err, ERR_UNAVAILABLE, "host-copy needs a machine with dpkg (Debian, Ubuntu)");
    if (mkdirat(build->place, "root", 0755) < 0)
        return fail_os(err, "make the new root");
    auto_fd root = openat(build->place, "root", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (root < 0)
        return fail_os(err, "open the new root");
    if (host_packages_read(&all, err) < 0)
        return -1;
    build->root = root; /* while it is copied; the caller opens it again */
    int result = want_all(build, &all, err);
    if (result == 0)
        result = copy_all(build, &all, err);
    build->root = -1;
    host_packages_done(&all);
    return result;
}
