/* host_files.c - openat2() keeps each path beneath the folder; it must lead to a regular file. */
#include "cli/mcp/host_files.h"

#include "base/cleanup.h"
#include "base/write_whole.h"
#include "template/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 1 << 20, SHOWN_SIZE = 96 };

int host_files_open(struct host_files *files, const char *option, error *err)
{
    size_t size = strlen(option);
    bool has_mode = size > 3 && (strcmp(option + size - 3, ":rw") == 0 ||
                                 strcmp(option + size - 3, ":ro") == 0);
    char path[PATH_MAX];
    int length = (int) (has_mode ? size - 3 : size);
    if (snprintf(path, sizeof path, "%.*s", length, option) >= (int) sizeof path)
        return fail(err, ERR_BAD_REQUEST, "--files: the path is too long");
    files->may_write = has_mode && option[size - 1] == 'w';
    files->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (files->folder < 0)
        return fail_os(err, "--files: open the folder '%.100s'", path);
    if (files->may_write && faccessat(files->folder, ".", W_OK | X_OK, AT_EACCESS) < 0)
        return fail_os(err, "--files: write into the folder '%.100s'", path);
    return 0;
}

/* The path as one line, for messages. */
static const char *shown(const char *path, char room[SHOWN_SIZE])
{
    size_t size = 0;
    for (; *path && size + sizeof "\\x00" < SHOWN_SIZE; path++) {
        unsigned byte = (unsigned char) *path;
        if (byte < ' ' || byte == 0x7f)
            size += (size_t) snprintf(room + size, SHOWN_SIZE - size, "\\x%02x", byte);
        else
            room[size++] = *path;
    }
    room[size] = '\0';
    return room;
}

static int fail_open(const char *path, error *err)
{
    char room[SHOWN_SIZE];
    int number = errno;
    (void) shown(path, room);
    if (number == ENOENT || number == ENOTDIR)
        return fail(err, ERR_NOT_FOUND, "the user's folder has no '%s'", room);
    if (number == EXDEV || number == ELOOP)
        return fail(err, ERR_POLICY, "'%s' %s; name a file beneath the user's folder", room,
                    number == ELOOP ? "is reached by a link" : "lies outside");
    return fail_os(err, "open '%s' of the user's folder", room);
}

/* A file with several names (hard links) may also lie outside of the folder, so it is refused like
 * a link. */
static int check_file(int fd, const char *path, error *err)
{
    struct stat status;
    char room[SHOWN_SIZE];
    if (fstat(fd, &status) < 0)
        return fail_open(path, err);
    if (!S_ISREG(status.st_mode))
        return fail(err, ERR_POLICY, "'%s' is no regular file; only these are copied",
                    shown(path, room));
    if (status.st_nlink != 1)
        return fail(err, ERR_POLICY, "'%s' has %ju names (hard links), and must have one; copy it",
                    shown(path, room), (uintmax_t) status.st_nlink);
    if (status.st_size > HOST_FILE_MAX)
        return fail(err, ERR_TOO_LARGE, "'%s' has %jd bytes; at most %d are copied",
                    shown(path, room), (intmax_t) status.st_size, HOST_FILE_MAX);
    return 0;
}

/* Reads up to the end of the file, which may grow meanwhile. */
static int read_all(int fd, const char *path, struct bytes *out, error *err)
{
    char room[SHOWN_SIZE];
    for (;;) {
        char *block = bytes_reserve(out, BLOCK);
        ssize_t got = block ? read(fd, block, BLOCK) : -1;
        if (got == 0)
            return 0;
        if (got < 0 && block && errno == EINTR)
            continue;
        if (got < 0)
            return fail_os(err, "read '%s' of the user's folder", shown(path, room));
        out->size += (size_t) got;
        if (out->size > HOST_FILE_MAX)
            return fail(err, ERR_TOO_LARGE, "'%s' grows beyond %d bytes", shown(path, room),
                        HOST_FILE_MAX);
    }
}

int host_file_read(const struct host_files *files, const char *path, struct bytes *out, error *err)
{
    char same[32];
    /* A file is opened for reading only after it was checked: opening a device or FIFO can have
     * effects. */
    auto_fd found = tree_open(files->folder, path, O_PATH);
    if (found < 0)
        return fail_open(path, err);
    if (check_file(found, path, err) < 0)
        return -1;
    (void) snprintf(same, sizeof same, "/proc/self/fd/%d", found);
    auto_fd file = open(same, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return file < 0 ? fail_open(path, err) : read_all(file, path, out, err);
}

/* Refuses names that begin with a dot: ".." and settings of other programs (.git/config,
 * .envrc). */
static int check_names(const char *path, error *err)
{
    char room[SHOWN_SIZE];
    for (const char *part = path;; part++) {
        if (*part == '.' || *part == '/' || *part == '\0')
            return fail(err, ERR_POLICY,
                        "'%s' cannot be written: no part of a path may be empty or begin with a "
                        "dot",
                        shown(path, room));
        part = strchr(part, '/');
        if (!part)
            return 0;
    }
}

static int open_folder(const struct host_files *files, const char *path, int *ret_folder,
                       error *err)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int length = slash ? (int) (slash - path) : 1;
    if (snprintf(folder, sizeof folder, "%.*s", length, slash ? path : ".") >= (int) sizeof folder)
        return fail(err, ERR_TOO_LARGE, "the path is too long");
    *ret_folder = tree_open(files->folder, folder, O_PATH | O_DIRECTORY);
    return *ret_folder < 0 ? fail_open(folder, err) : 0;
}

/* Gives the complete file its name. No link is followed: rename(2) replaces a link itself, and one
 * that was there at the check has been refused. */
static int name_it(int folder, const char *temporary, const char *name, bool replaces)
{
    struct stat status;
    if (!replaces)
        return renameat2(folder, temporary, folder, name, RENAME_NOREPLACE);
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(status.st_mode)) {
        errno = ELOOP;
        return -1;
    }
    return renameat(folder, temporary, folder, name);
}

static int fail_name(const char *path, error *err)
{
    char room[SHOWN_SIZE];
    int number = errno;
    (void) shown(path, room);
    if (number == EEXIST)
        return fail(err, ERR_CONFLICT, "'%s' exists; replace: true puts the file in its place",
                    room);
    if (number == ELOOP)
        return fail(err, ERR_POLICY, "'%s' is no regular file; only these are replaced", room);
    errno = number;
    return fail_os(err, "write '%s' of the user's folder", room);
}

int host_file_write(const struct host_files *files, const struct host_write *order, error *err)
{
    char temporary[32];
    uint64_t random;
    auto_fd folder = -1;
    if (!files->may_write)
        return fail(err, ERR_POLICY, "the user's folder may only be read");
    if (check_names(order->path, err) < 0 || open_folder(files, order->path, &folder, err) < 0)
        return -1;
    if (getrandom(&random, sizeof random, 0) != (ssize_t) sizeof random)
        return fail_os(err, "get random bytes");
    (void) snprintf(temporary, sizeof temporary, ".glovebox-%016jx", (uintmax_t) random);
    auto_fd file =
        openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file < 0)
        return fail_name(order->path, err);
    const char *slash = strrchr(order->path, '/');
    if (write_whole(file, order->bytes, order->size) < 0 ||
        name_it(folder, temporary, slash ? slash + 1 : order->path, order->replaces) < 0) {
        (void) fail_name(order->path, err);
        (void) unlinkat(folder, temporary, 0);
        return -1;
    }
    return 0;
}
