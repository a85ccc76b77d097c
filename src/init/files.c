/* files.c - files in, out and about. Each path is resolved by the kernel beneath its folder and
 * through no link (openat2(2), RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS), by a process that has no
 * more rights than the program itself: what a path leads to is the sandbox's own affair. */
#include "init/init.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH_MOST = 64 };

/* The file that is being written; gloveboxd sends one after the other. */
static struct {
    bool open;
    uint32_t id;
    int file;
    uint32_t mode;
    int64_t mtime_ns;
    uint64_t left;
} putting = { .file = -1 };

int open_beneath(int folder, const char *path, int flags, mode_t mode, error *err)
{
    struct open_how how = {
        .flags = (uint64_t) (unsigned) (flags | O_CLOEXEC | O_NOFOLLOW),
        .mode = flags & O_CREAT ? mode : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    int fd = (int) syscall(SYS_openat2, folder, *path ? path : ".", &how, sizeof how);
    if (fd < 0)
        return fail_os(err, "open '%.100s'", path);
    return fd;
}

/* Makes the folders that lead to a path, and gives the last of them with the name that is left. */
/* NOLINTNEXTLINE(readability-function-size): each parameter is a fact of its own */
static int open_parent(int folder, const char *path, bool make, int *ret_parent,
                       const char **ret_name, error *err)
{
    auto_fd at = open_beneath(folder, ".", O_RDONLY | O_DIRECTORY, 0, err);
    if (at < 0)
        return -1;
    for (;;) {
        const char *slash = strchr(path, '/');
        char name[256];
        size_t length = slash ? (size_t) (slash - path) : strlen(path);
        if (length == 0 || length >= sizeof name || strncmp(path, "..", length) == 0)
            return fail(err, ERR_BAD_REQUEST, "'%.100s' is not a path below the folder", path);
        if (!slash) {
            *ret_parent = take_fd(&at);
            *ret_name = path;
            return 0;
        }
        memcpy(name, path, length);
        name[length] = '\0';
        if (make && mkdirat(at, name, 0755) < 0 && errno != EEXIST)
            return fail_os(err, "make folder '%s'", name);
        int inner = open_beneath(at, name, O_RDONLY | O_DIRECTORY, 0, err);
        if (inner < 0)
            return -1;
        (void) close(at);
        at = inner;
        path = slash + 1;
    }
}

bool is_putting(uint32_t id)
{
    return putting.open && putting.id == id;
}

static void stop_putting(void)
{
    if (putting.file >= 0)
        (void) close(putting.file);
    putting.file = -1;
}

int put_begin(struct sandbox *sandbox, uint32_t id, const unsigned char *payload, size_t size,
              error *err)
{
    struct inside_put put;
    memcpy(&put, payload, sizeof put);
    const char *path = (const char *) payload + sizeof put;
    if (putting.open)
        return fail(err, ERR_PROTOCOL, "file %u is not complete yet", putting.id);
    putting.open = true; /* what follows belongs to it, even if it cannot be created */
    putting.id = id;
    if (strlen(path) != size - sizeof put || strlen(path) > INSIDE_PATH_MOST)
        return fail(err, ERR_BAD_REQUEST, "a path holds a NUL byte or is longer than %d bytes",
                    INSIDE_PATH_MOST);

    auto_fd parent = -1;
    const char *name = NULL;
    int folder = put.flags & INSIDE_PUT_SYSTEM ? sandbox->root : sandbox->workspace;
    if (open_parent(folder, path, true, &parent, &name, err) < 0)
        return -1;
    /* A new file beside the old one's name: what was there (a link, a FIFO) is never opened. */
    if (unlinkat(parent, name, 0) < 0 && errno != ENOENT)
        return fail_os(err, "replace '%.100s'", path);
    putting.file = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (putting.file < 0)
        return fail_os(err, "create '%.100s'", path);
    putting.mode = put.flags & INSIDE_PUT_READ_ONLY ? put.mode & 0555 : put.mode & 0777;
    putting.mtime_ns = put.mtime_ns;
    putting.left = put.size;
    return 0;
}

/* After a failure the rest of the file is taken and thrown away; it has been answered already: each
 * file is answered once. */
int put_data(uint32_t id, const void *bytes, size_t size, error *err)
{
    (void) id;
    if (putting.file < 0)
        return 0;
    if (size > putting.left) {
        stop_putting();
        return fail(err, ERR_PROTOCOL, "a file is longer than was said");
    }
    putting.left -= size;
    for (const char *at = bytes; size > 0;) {
        ssize_t put = write(putting.file, at, size);
        if (put < 0) {
            (void) fail_os(err, "write a file of the request; the disk limit is too small for it");
            stop_putting();
            return -1;
        }
        at += put;
        size -= (size_t) put;
    }
    return 0;
}

int put_end(uint32_t id, error *err)
{
    (void) id;
    putting.open = false;
    if (putting.file < 0)
        return PUT_ANSWERED;
    struct timespec times[2] = {
        { .tv_nsec = UTIME_OMIT },
        { .tv_sec = putting.mtime_ns / 1000000000, .tv_nsec = putting.mtime_ns % 1000000000 },
    };
    int done = 0;
    if (putting.left > 0)
        done = fail(err, ERR_PROTOCOL, "a file is shorter than was said");
    else if (fchmod(putting.file, putting.mode) < 0 || futimens(putting.file, times) < 0)
        done = fail_os(err, "set mode and time of a file");
    stop_putting();
    return done;
}

/* Streams an open file as DATA frames. Exactly `size` bytes are promised by FILE; a file that
 * shrinks meanwhile ends early, and END tells how much came. */
/* NOLINTNEXTLINE(readability-function-size): each parameter is a fact of its own */
int send_file(const struct sandbox *sandbox, uint32_t id, int file, const char *path, uint64_t size,
              error *err)
{
    static char block[INSIDE_PAYLOAD_MOST];
    uint64_t left = size;
    while (left > 0) {
        size_t wanted = left < sizeof block ? (size_t) left : sizeof block;
        ssize_t got = read(file, block, wanted);
        if (got < 0)
            return fail_os(err, "read '%.100s'", path);
        if (got == 0)
            break;
        send_frame(sandbox, INSIDE_DATA, 0, id, block, (size_t) got, NULL, 0);
        left -= (uint64_t) got;
    }
    send_frame(sandbox, INSIDE_END, 0, id, NULL, 0, NULL, 0);
    return 0;
}

int get_file(struct sandbox *sandbox, uint32_t id, const char *path, error *err)
{
    struct stat status;
    auto_fd file = open_beneath(sandbox->workspace, path, O_RDONLY | O_NONBLOCK, 0, err);
    if (file < 0)
        return -1;
    if (fstat(file, &status) < 0 || !S_ISREG(status.st_mode))
        return fail(err, ERR_BAD_REQUEST, "'%.100s' is not a regular file", path);
    struct inside_file head = {
        .size = (uint64_t) status.st_size,
        .mtime_ns = (int64_t) status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec,
        .mode = status.st_mode,
    };
    send_frame(sandbox, INSIDE_FILE, 0, id, &head, sizeof head, path, strlen(path));
    return send_file(sandbox, id, file, path, head.size, err);
}

int make_folder(struct sandbox *sandbox, const char *path, error *err)
{
    auto_fd parent = -1;
    const char *name = NULL;
    if (open_parent(sandbox->workspace, path, true, &parent, &name, err) < 0)
        return -1;
    if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
        return fail_os(err, "make folder '%.100s'", path);
    return 0;
}

int move_path(struct sandbox *sandbox, const char *from, const char *to, error *err)
{
    auto_fd from_parent = -1;
    auto_fd to_parent = -1;
    const char *from_name = NULL;
    const char *to_name = NULL;
    if (open_parent(sandbox->workspace, from, false, &from_parent, &from_name, err) < 0 ||
        open_parent(sandbox->workspace, to, true, &to_parent, &to_name, err) < 0)
        return -1;
    if (renameat(from_parent, from_name, to_parent, to_name) < 0)
        return fail_os(err, "move '%.80s' to '%.80s'", from, to);
    return 0;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Empties a folder. Entries are removed while they are listed, so it is listed again until it is
 * empty. */
static int empty_folder(int folder, int depth, error *err) // NOLINT(misc-no-recursion): bounded
{
    _Alignas(struct listed) char entries[2048];
    for (;;) {
        if (lseek(folder, 0, SEEK_SET) < 0)
            return fail_os(err, "list a folder");
        long got = syscall(SYS_getdents64, folder, entries, sizeof entries);
        if (got < 0)
            return fail_os(err, "list a folder");
        unsigned removed = 0;
        for (long at = 0; at < got;) {
            const struct listed *entry = (const struct listed *) (entries + at);
            at += entry->length;
            if (is_dots(entry->name))
                continue;
            removed++;
            if (unlinkat(folder, entry->name, 0) == 0)
                continue;
            if (errno != EISDIR && errno != EPERM)
                return fail_os(err, "remove '%.100s'", entry->name);
            if (depth == 0)
                return fail(err, ERR_LIMIT, "folders are nested deeper than %d", DEPTH_MOST);
            auto_fd inner =
                openat(folder, entry->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (inner < 0 || empty_folder(inner, depth - 1, err) < 0)
                return inner < 0 ? fail_os(err, "open '%.100s'", entry->name) : -1;
            if (unlinkat(folder, entry->name, AT_REMOVEDIR) < 0)
                return fail_os(err, "remove '%.100s'", entry->name);
        }
        if (removed == 0)
            return 0;
    }
}

int remove_path(struct sandbox *sandbox, const char *path, error *err)
{
    auto_fd parent = -1;
    const char *name = NULL;
    if (open_parent(sandbox->workspace, path, false, &parent, &name, err) < 0)
        return -1;
    /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): set unless that failed */
    if (unlinkat(parent, name, 0) == 0)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return fail_os(err, "remove '%.100s'", path);
    auto_fd folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return fail_os(err, "open '%.100s'", path);
    if (empty_folder(folder, DEPTH_MOST, err) < 0)
        return -1;
    if (unlinkat(parent, name, AT_REMOVEDIR) < 0)
        return fail_os(err, "remove '%.100s'", path);
    return 0;
}

/* One folder of a listing; depth first, names in the order of the file system. */
struct listing {
    struct sandbox *sandbox;
    uint32_t id;
    uint32_t left;
    char path[INSIDE_PATH_MOST + 1];
};

/* NOLINTNEXTLINE(misc-no-recursion): depth is bounded */
static int list_into(struct listing *listing, int folder, size_t length, uint32_t depth,
                     error *err) // NOLINT(misc-no-recursion): bounded
{
    _Alignas(struct listed) char entries[4096];
    long got;
    while ((got = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0) {
        for (long at = 0; at < got && listing->left > 0;) {
            const struct listed *entry = (const struct listed *) (entries + at);
            struct stat status;
            at += entry->length;
            size_t name = strlen(entry->name);
            if (is_dots(entry->name) || length + name + 1 > INSIDE_PATH_MOST ||
                fstatat(folder, entry->name, &status, AT_SYMLINK_NOFOLLOW) < 0)
                continue;
            memcpy(listing->path + length, entry->name, name + 1);
            struct inside_file row = {
                .size = (uint64_t) status.st_size,
                .mtime_ns = (int64_t) status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec,
                .mode = status.st_mode,
                .depth = depth,
            };
            send_frame(listing->sandbox, INSIDE_ENTRY, 0, listing->id, &row, sizeof row,
                       listing->path, length + name);
            listing->left--;
            if (!S_ISDIR(status.st_mode) || depth <= 1)
                continue;
            auto_fd inner =
                openat(folder, entry->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (inner < 0)
                continue;
            listing->path[length + name] = '/';
            if (list_into(listing, inner, length + name + 1, depth - 1, err) < 0)
                return -1;
        }
    }
    return got < 0 ? fail_os(err, "list a folder") : 0;
}

int list_folder(struct sandbox *sandbox, uint32_t id, const struct inside_list *order,
                const char *path, error *err)
{
    static struct listing listing;
    auto_fd folder = open_beneath(sandbox->workspace, path, O_RDONLY | O_DIRECTORY, 0, err);
    if (folder < 0)
        return -1;
    uint32_t depth = order->depth == 0 ? 1 : order->depth;
    listing = (struct listing){ .sandbox = sandbox, .id = id, .left = order->most };
    return list_into(&listing, folder, 0, depth < DEPTH_MOST ? depth : DEPTH_MOST, err);
}
