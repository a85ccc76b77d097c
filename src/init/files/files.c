/* files.c - files of a run: its inputs go in, artifacts come out. The kernel resolves each path
 * beneath its folder and through no link (openat2(2), RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS). Init
 * has no more rights than the program, so a path reaches nothing that the program could not. */
#include "init/init.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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
    return fd < 0 ? fail_os(err, "open '%.100s'", path) : fd;
}

/* Makes the folders that lead to a path, and gives the last of them with the name that is left. */
/* NOLINTNEXTLINE(readability-function-size): each parameter is a fact of its own */
int open_parent(int folder, const char *path, bool make, int *ret_parent, const char **ret_name,
                error *err)
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
        int inner = open_inner(at, name, O_RDONLY);
        if (inner < 0)
            return fail_os(err, "open '%.100s'", name);
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
    close_fd(&putting.file);
    putting.file = -1;
}

int put_begin(struct sandbox *sandbox, uint32_t id, const unsigned char *payload, size_t size,
              error *err)
{
    struct agent_put put;
    memcpy(&put, payload, sizeof put);
    const char *path = (const char *) payload + sizeof put;
    if (putting.open)
        return fail(err, ERR_PROTOCOL, "file %u is not complete yet", putting.id);
    putting.open = true; /* what follows belongs to it, even if it cannot be created */
    putting.id = id;
    if (strlen(path) != size - sizeof put || strlen(path) > AGENT_PATH_MAX)
        return fail(err, ERR_BAD_REQUEST, "a path holds a NUL byte or is longer than %d bytes",
                    AGENT_PATH_MAX);

    auto_fd parent = -1;
    const char *name = NULL;
    int folder = put.flags & AGENT_PUT_SYSTEM ? sandbox->root : sandbox->workspace;
    if (open_parent(folder, path, true, &parent, &name, err) < 0 || !name)
        return -1;
    /* A new file next to the old one's name: what was there (a link, a FIFO) is never opened. */
    if (unlinkat(parent, name, 0) < 0 && errno != ENOENT)
        return fail_os(err, "replace '%.100s'", path);
    putting.file = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (putting.file < 0)
        return fail_os(err, "create '%.100s'", path);
    putting.mode = put.flags & AGENT_PUT_READ_ONLY ? put.mode & 0555 : put.mode & 0777;
    putting.mtime_ns = put.mtime_ns;
    putting.left = put.size;
    return 0;
}

/* After a failure, which has been answered, the rest of the file is discarded. */
int put_data(uint32_t id, const void *bytes, size_t size, error *err)
{
    (void) id;
    if (putting.file < 0)
        return 0;
    if (size > putting.left) {
        stop_putting();
        return fail(err, ERR_PROTOCOL, "a file is longer than announced");
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
        done = fail(err, ERR_PROTOCOL, "a file is shorter than announced");
    else if (fchmod(putting.file, putting.mode) < 0 || futimens(putting.file, times) < 0)
        done = fail_os(err, "set mode and time of a file");
    stop_putting();
    return done;
}

/* Streams an open file as DATA frames. FILE announces `size` bytes; END comes earlier if the file
 * has been truncated meanwhile. */
/* NOLINTNEXTLINE(readability-function-size): each parameter is a fact of its own */
int send_file(const struct sandbox *sandbox, uint32_t id, int file, const char *path, uint64_t size,
              error *err)
{
    static char block[AGENT_PAYLOAD_MAX];
    uint64_t left = size;
    while (left > 0) {
        size_t wanted = left < sizeof block ? (size_t) left : sizeof block;
        ssize_t got = read(file, block, wanted);
        if (got < 0)
            return fail_os(err, "read '%.100s'", path);
        if (got == 0)
            break;
        send_frame(sandbox, AGENT_DATA, 0, id, block, (size_t) got, NULL, 0);
        left -= (uint64_t) got;
    }
    send_frame(sandbox, AGENT_END, 0, id, NULL, 0, NULL, 0);
    return 0;
}
