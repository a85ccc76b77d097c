/* transfers.c - READ and WRITE of a session. A file is written under a temporary name and renamed
 * when it is complete: a reader sees the old file or the new one. */
#include "init/operations.h"

#include "base/cleanup.h"
#include "base/table.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int step_read(struct sandbox *sandbox, struct operation *operation, error *err)
{
    static char block[AGENT_PAYLOAD_MAX];
    uint64_t wanted = operation->left < sizeof block ? operation->left : sizeof block;
    if (wanted > operation->credit)
        wanted = operation->credit;
    ssize_t got = wanted > 0 ? read(operation->fd, block, wanted) : 0;
    if (got < 0)
        return fail_os(err, "read the file");
    if (got > 0) {
        operation_send(sandbox, operation, AGENT_DATA, block, (size_t) got);
        operation->left -= (uint64_t) got;
    }
    if (got > 0 && operation->left > 0)
        return OPERATION_GOES_ON;
    operation_send(sandbox, operation, AGENT_END, NULL, 0); /* early, if it has become shorter */
    return OPERATION_ENDS;
}

static const struct operation_kind reading = { .step = step_read };

static int check_is_file(int file, const char *path, struct stat *status, error *err)
{
    if (fstat(file, status) < 0)
        return fail_os(err, "look at '%.100s'", path);
    if (S_ISREG(status->st_mode))
        return 0;
    errno = S_ISDIR(status->st_mode) ? EISDIR : EINVAL;
    return fail_os(err, "'%.100s' is no regular file", path);
}

int begin_read(struct sandbox *sandbox, const struct frame *in, error *err)
{
    struct agent_read order;
    struct stat status;
    struct operation *operation;
    memcpy(&order, in->payload, sizeof order);
    const char *path = (const char *) in->payload + sizeof order;
    /* O_NONBLOCK: open(2) would wait for a FIFO's other side, or for the end of a lease. */
    auto_fd file = open_path(sandbox, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, err);
    if (file < 0 && err->os == ENXIO) { /* a socket, or a device that is not there */
        errno = EINVAL;
        return fail_os(err, "'%.100s' is no regular file", path);
    }
    if (file < 0 || check_is_file(file, path, &status, err) < 0)
        return -1;
    uint64_t size = (uint64_t) status.st_size;
    if (order.offset > size)
        order.offset = size;
    if (lseek(file, (off_t) order.offset, SEEK_SET) < 0)
        return fail_os(err, "seek in '%.100s'", path);
    if (operation_begin(in->head.id, &reading, &operation, err) < 0)
        return -1;
    operation->fd = take_fd(&file);
    operation->left = size - order.offset < order.length ? size - order.offset : order.length;
    operation->credit = order.credit;
    struct agent_file head = {
        .size = size,
        .mtime_ns = nanoseconds_of(&status.st_mtim),
        .mode = status.st_mode,
    };
    send_frame(sandbox, AGENT_FILE, 0, in->head.id, &head, sizeof head, path, strlen(path));
    return 0;
}

struct writing {
    bool is_taken;
    int folder;
    mode_t mode;
    bool is_new;
    char name[NAME_MAX + 1];
    char temporary[32]; /* "" once it has been renamed */
};

static struct writing writings[8];

static struct writing *take_writing(void)
{
    for_each(writing, writings)
        if (!writing->is_taken) {
            *writing = (struct writing){ .is_taken = true, .folder = -1 };
            return writing;
        }
    errno = EAGAIN;
    return NULL;
}

static void close_write(struct operation *operation)
{
    struct writing *writing = operation->room;
    if (writing->temporary[0])
        (void) unlinkat(writing->folder, writing->temporary, 0);
    close_fd(&writing->folder);
    writing->is_taken = false;
}

static int write_data(struct sandbox *sandbox, struct operation *operation, const void *bytes,
                      size_t size, error *err)
{
    (void) sandbox;
    const struct writing *writing = operation->room;
    for (const char *at = bytes; size > 0;) {
        ssize_t put = write(operation->fd, at, size);
        if (put < 0)
            return fail_os(err, "write '%.100s'", writing->name);
        at += put;
        size -= (size_t) put;
    }
    return OPERATION_GOES_ON;
}

static int write_end(struct sandbox *sandbox, struct operation *operation, error *err)
{
    struct writing *writing = operation->room;
    if (fchmod(operation->fd, writing->mode) < 0)
        return fail_os(err, "set the mode of '%.100s'", writing->name);
    if (syscall(SYS_renameat2, writing->folder, writing->temporary, writing->folder, writing->name,
                writing->is_new ? RENAME_NOREPLACE : 0) < 0)
        return fail_os(err, "name the file '%.100s'", writing->name);
    writing->temporary[0] = '\0';
    send_entry(sandbox, operation->id, writing->folder, writing->name, writing->name, 0);
    return OPERATION_ENDS;
}

static const struct operation_kind being_written = { .data = write_data,
                                                     .end = write_end,
                                                     .close = close_write };

/* Checks what has the name now. */
static int prepare_write(struct writing *writing, const struct agent_write *order, const char *path,
                         error *err)
{
    struct stat old;
    bool exists = fstatat(writing->folder, writing->name, &old, AT_SYMLINK_NOFOLLOW) == 0;
    writing->is_new = order->flags & AGENT_WRITE_NEW;
    writing->mode = order->mode & 0777;
    if (writing->mode == 0)
        writing->mode = exists && S_ISREG(old.st_mode) ? old.st_mode & 0777 : 0644;
    errno = !exists ? 0 : S_ISDIR(old.st_mode) ? EISDIR : writing->is_new ? EEXIST : 0;
    return errno == 0 ? 0 : fail_os(err, "write '%.100s'", path);
}

static int create_write(struct operation *operation, uint32_t id, const char *path, error *err)
{
    struct writing *writing = operation->room;
    char temporary[sizeof writing->temporary];
    (void) snprintf(temporary, sizeof temporary, ".glovebox-%u.part", id);
    (void) unlinkat(writing->folder, temporary, 0); /* a program may have made one of this name */
    operation->fd = openat(writing->folder, temporary,
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (operation->fd < 0)
        return fail_os(err, "create '%.100s'", path);
    memcpy(writing->temporary, temporary, sizeof temporary);
    return 0;
}

int begin_write(struct sandbox *sandbox, const struct frame *in, error *err)
{
    struct agent_write order;
    struct operation *operation;
    const char *name;
    memcpy(&order, in->payload, sizeof order);
    const char *path = (const char *) in->payload + sizeof order;
    auto_fd folder = open_place(sandbox, path, true, &name, err);
    if (folder < 0)
        return -1;
    struct writing *writing = take_writing();
    if (!writing)
        return fail_os(err, "%zu files are being written already", COUNT_OF(writings));
    (void) snprintf(writing->name, sizeof writing->name, "%s", name);
    writing->folder = folder;
    struct operation begun = { .room = writing, .fd = -1 };
    if (prepare_write(writing, &order, path, err) < 0 ||
        create_write(&begun, in->head.id, path, err) < 0 ||
        operation_begin(in->head.id, &being_written, &operation, err) < 0) {
        close_fd(&begun.fd);
        (void) take_fd(&folder);
        close_write(&begun);
        return -1;
    }
    (void) take_fd(&folder);
    operation->room = writing;
    operation->fd = begun.fd;
    send_frame(sandbox, AGENT_OPENED, 0, in->head.id, NULL, 0, NULL, 0);
    return 0;
}
