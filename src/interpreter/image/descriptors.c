/* descriptors.c - saves the descriptors of a process, and opens them again.
 *
 * A file is opened again by its path, at its offset. One without a name (deleted, O_TMPFILE, memfd)
 * is mapped by the child, and so becomes shared memory of the image. Pipes, sockets and so on
 * cannot be restored: each becomes a socket whose other end is closed, so that programs see an end
 * (read: 0, write: EPIPE) and not another file under the number. */
#include "interpreter/image/image_parts.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

struct entry {
    uint64_t inode;
    int64_t next;
    uint16_t size;
    uint8_t kind;
    char name[];
};

/* True for files and folders that every sandbox has or that a branch copies, and for devices like
 * /dev/null. Not for files of /proc, which would describe another process. */
static bool can_open_again(const struct stat *now, const char *path)
{
    struct stat named;
    if (!S_ISREG(now->st_mode) && !S_ISDIR(now->st_mode) && !S_ISCHR(now->st_mode))
        return false;
    if (path[0] != '/' || text_begins(path, "/proc/") || text_begins(path, "/sys/") ||
        text_begins(path, "/dev/pts/"))
        return false;
    return stat(path, &named) == 0 && named.st_dev == now->st_dev && named.st_ino == now->st_ino;
}

static int stream_of(const struct stat *now, const struct stream *streams, int number)
{
    for (int i = 0; i < 3; i++)
        if (streams[i].inode == now->st_ino && streams[i].device == now->st_dev &&
            !S_ISCHR(now->st_mode))
            return i;
    bool are_known = streams[0].inode || streams[1].inode || streams[2].inode;
    return !are_known && number < 3 ? number : -1;
}

/* Tests by F_SETSIG (fcntl(2)): copies made by dup(2) share its value, like the file offset. It is
 * changed and changed back. */
static bool is_copy_of(int number, int other)
{
    int before = fcntl(other, F_GETSIG), probe = before == SIGURG ? SIGIO : SIGURG;
    if (before < 0 || fcntl(number, F_GETSIG) != before || fcntl(other, F_SETSIG, probe) < 0)
        return false;
    bool is_copy = fcntl(number, F_GETSIG) == probe;
    (void) fcntl(other, F_SETSIG, before);
    return is_copy;
}

static bool find_original(const struct descriptors *all, struct descriptor *one)
{
    for (unsigned i = 0; i + 1 < all->count; i++) {
        const struct descriptor *other = &all->table[i];
        if ((other->kind != DESCRIPTOR_FILE && other->kind != DESCRIPTOR_NAMELESS) ||
            other->device != one->device || other->inode != one->inode ||
            other->offset != one->offset || other->flags != one->flags ||
            !is_copy_of(one->number, other->number))
            continue;
        one->of = i;
        return true;
    }
    return false;
}

/* Maps all of it and reads it, so that the image holds all of its contents. */
static int note_nameless(struct descriptor *one, const struct stat *now, error *err)
{
    one->kind = DESCRIPTOR_NAMELESS;
    one->size = (size_t) now->st_size;
    one->object = -1;
    if (one->size == 0)
        return 0;
    char own[32];
    (void) snprintf(own, sizeof own, "/proc/self/fd/%d", one->number);
    auto_fd file = open(own, O_RDONLY | O_CLOEXEC); /* the descriptor may be write-only */
    one->mapped = mmap(NULL, one->size, PROT_READ, MAP_SHARED, file, 0);
    return one->mapped == MAP_FAILED
               ? fail_os(err, "copy the file without a name behind descriptor %d", one->number)
               : 0;
}

static int note_one(struct descriptors *all, const struct stream *streams, int number, error *err)
{
    struct stat now;
    char own[32];
    if (fstat(number, &now) < 0)
        return fail_os(err, "look at descriptor %d", number);
    if (all->count == DESCRIPTORS_MAX)
        return fail(err, ERR_UNAVAILABLE, "more than %d descriptors are open", DESCRIPTORS_MAX);
    struct descriptor *one = &all->table[all->count++];
    *one = (struct descriptor){ .number = number,
                                .kind = DESCRIPTOR_LOST,
                                .flags = fcntl(number, F_GETFL),
                                .closes = fcntl(number, F_GETFD) & FD_CLOEXEC,
                                .mode = now.st_mode,
                                .device = now.st_dev,
                                .inode = now.st_ino,
                                .name = all->names_size };
    one->stream = stream_of(&now, streams, number);
    if (one->stream >= 0) {
        one->kind = DESCRIPTOR_STREAM;
        return 0;
    }
    char *name = all->names + all->names_size;
    if (DESCRIPTOR_NAMES - all->names_size <= PATH_MAX)
        return fail(err, ERR_UNAVAILABLE, "the names of open files are too long");
    (void) snprintf(own, sizeof own, "/proc/self/fd/%d", number);
    ssize_t size = readlink(own, name, PATH_MAX - 1);
    if (size < 0 && errno == ENAMETOOLONG)
        size = 0; /* it could not be opened by such a name */
    if (size < 0)
        return fail_os(err, "look at descriptor %d", number);
    name[size] = '\0';
    if (S_ISREG(now.st_mode))
        one->offset = lseek(number, 0, SEEK_CUR);
    if (find_original(all, one)) {
        one->kind = DESCRIPTOR_COPY;
        return 0;
    }
    if (!can_open_again(&now, name)) {
        if (S_ISREG(now.st_mode) && !text_begins(name, "/proc/") && !text_begins(name, "/sys/"))
            return note_nameless(one, &now, err);
        all->lost++;
        return 0;
    }
    one->kind = DESCRIPTOR_FILE;
    all->names_size += (size_t) size + 1;
    return 0;
}

static bool is_among(int number, const int *numbers, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (numbers[i] == number)
            return true;
    return false;
}

int descriptors_note(struct descriptors *all, const struct stream *streams, const int *apart,
                     unsigned apart_count, error *err)
{
    _Alignas(8) char list[4096];
    auto_fd folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return fail_os(err, "list the descriptors");
    all->count = all->lost = 0;
    all->names_size = 0;
    for (;;) {
        long size = syscall(SYS_getdents64, folder, list, sizeof list);
        if (size < 0)
            return fail_os(err, "list the descriptors");
        if (size == 0)
            return 0;
        for (long at = 0; at < size;) {
            const struct entry *entry = (const struct entry *) (list + at);
            at += entry->size;
            int number = (int) strtol(entry->name, NULL, 10);
            if (entry->name[0] == '.' || number == folder || is_among(number, apart, apart_count))
                continue;
            if (note_one(all, streams, number, err) < 0)
                return -1;
        }
    }
}

/* Moves descriptor `from` to the number of `one`. */
static int place(const struct descriptor *one, int from, error *err)
{
    int closes = one->closes ? FD_CLOEXEC : 0;
    if (from != one->number) {
        if (dup3(from, one->number, one->closes ? O_CLOEXEC : 0) < 0)
            return fail_os(err, "put back descriptor %d", one->number);
        (void) close(from);
    } else if (fcntl(from, F_SETFD, closes) < 0) {
        return fail_os(err, "put back descriptor %d", one->number);
    }
    return 0;
}

static int open_again(const struct descriptor *one, const char *path, error *err)
{
    struct stat now;
    int flags = (one->flags & ~(O_CREAT | O_EXCL | O_TRUNC)) | O_CLOEXEC | O_NOCTTY;
    if ((one->flags & O_TMPFILE) == O_TMPFILE)
        flags &= ~(O_TMPFILE & ~O_DIRECTORY); /* it was linked to a name later */
    int file = open(path, flags);
    if (file < 0)
        return fail_os(err, "open '%s' again", path);
    if (fstat(file, &now) < 0 || (now.st_mode & S_IFMT) != (one->mode & S_IFMT)) {
        (void) close(file);
        return fail(err, ERR_UNAVAILABLE, "'%s' is another kind of file now", path);
    }
    if (one->offset > 0 && lseek(file, one->offset, SEEK_SET) < 0) {
        (void) close(file);
        return fail_os(err, "find the place in '%s'", path);
    }
    return place(one, file, err);
}

static int open_nameless(const struct descriptor *one, int object, error *err)
{
    const int flags = one->flags & (O_ACCMODE | O_APPEND | O_NONBLOCK);
    char own[32];
    (void) snprintf(own, sizeof own, "/proc/self/fd/%d", object);
    int file =
        one->size == 0 ? memfd_create("nameless", MFD_CLOEXEC) : open(own, flags | O_CLOEXEC);
    if (file < 0 || (one->size == 0 && fcntl(file, F_SETFL, flags) < 0))
        return fail_os(err, "open the file without a name behind descriptor %d", one->number);
    /* Shared memory has whole pages; the file gets its exact size. */
    if (one->size > 0 && truncate(own, (off_t) one->size) < 0)
        return fail_os(err, "end the file without a name behind descriptor %d", one->number);
    if (one->offset > 0 && lseek(file, one->offset, SEEK_SET) < 0)
        return fail_os(err, "find the place behind descriptor %d", one->number);
    if (one->mapped)
        (void) munmap(one->mapped, one->size);
    return place(one, file, err);
}

static int open_end(const struct descriptor *one, error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return fail_os(err, "make an end for descriptor %d", one->number);
    if (pair[1] != one->number) /* else place() closes it by taking the number */
        (void) close(pair[1]);
    if (one->flags & O_NONBLOCK)
        (void) fcntl(pair[0], F_SETFL, O_NONBLOCK);
    return place(one, pair[0], err);
}

/* What is open at the beginning: the program's streams, the control socket, shared memory. */
struct given {
    int streams[3], control, objects[IMAGE_OBJECTS_MAX];
};

static bool is_taken(const struct descriptors *all, int control, int number)
{
    for (unsigned i = 0; i < all->count; i++)
        if (all->table[i].number == number)
            return true;
    return number == control || fcntl(number, F_GETFD) >= 0;
}

/* Moves a descriptor to a number that is not needed. */
static int put_aside(const struct descriptors *all, int control, int *fd, error *err)
{
    int number = 3;
    while (is_taken(all, control, number))
        number++;
    if (dup3(*fd, number, O_CLOEXEC) < 0)
        return fail_os(err, "put aside descriptor %d", *fd);
    (void) close(*fd);
    *fd = number;
    return 0;
}

static int put_all_aside(const struct descriptors *all, int control, struct given *given,
                         error *err)
{
    for (int i = 0; i < 3; i++)
        if (put_aside(all, control, &given->streams[i], err) < 0)
            return -1;
    for (int i = 0; i < IMAGE_OBJECTS_MAX; i++)
        if (given->objects[i] >= 0 && put_aside(all, control, &given->objects[i], err) < 0)
            return -1;
    return put_aside(all, control, &given->control, err);
}

static int put_back_one(const struct descriptors *all, const struct descriptor *one,
                        const struct given *given, error *err)
{
    switch (one->kind) {
    case DESCRIPTOR_FILE:
        return open_again(one, all->names + one->name, err);
    case DESCRIPTOR_NAMELESS:
        return open_nameless(one, one->object < 0 ? -1 : given->objects[one->object], err);
    case DESCRIPTOR_LOST:
        return open_end(one, err);
    case DESCRIPTOR_STREAM:
    case DESCRIPTOR_COPY:
        break;
    }
    int from =
        one->kind == DESCRIPTOR_COPY ? all->table[one->of].number : given->streams[one->stream];
    if (dup3(from, one->number, one->closes ? O_CLOEXEC : 0) < 0)
        return fail_os(err, "put back descriptor %d", one->number);
    return 0;
}

int descriptors_find(struct descriptors *all, const struct space *space, error *err)
{
    for (unsigned i = 0; i < all->count; i++) {
        struct descriptor *one = &all->table[i];
        if (one->kind != DESCRIPTOR_NAMELESS || one->size == 0)
            continue;
        for (unsigned k = 0; k < space->objects_count; k++)
            if (space->objects[k].device == one->device && space->objects[k].inode == one->inode)
                one->object = (int) k;
        if (one->object < 0)
            return fail(err, ERR_UNAVAILABLE, "the file behind descriptor %d has no name",
                        one->number);
    }
    return 0;
}

int descriptors_put_back(const struct descriptors *all, int control, const int32_t *objects,
                         error *err)
{
    struct given given = { .streams = { 0, 1, 2 }, .control = IMAGE_FD_CONTROL };
    memcpy(given.objects, objects, sizeof given.objects);
    int result = put_all_aside(all, control, &given, err);
    if (result == 0 && dup3(given.control, control, O_CLOEXEC) < 0)
        result = fail_os(err, "put back the control socket");
    for (unsigned i = 0; i < all->count && result == 0; i++)
        result = put_back_one(all, &all->table[i], &given, err);
    if (result < 0) /* so that the reason can be reported */
        (void) dup3(given.streams[2], 2, 0);
    for (int i = 0; i < 3; i++)
        (void) close(given.streams[i]);
    for (int i = 0; i < IMAGE_OBJECTS_MAX; i++)
        close_fd(&given.objects[i]);
    (void) close(given.control);
    return result;
}
