/* unpack.c - unpacks a tar below one folder. Paths of members are resolved through no link, not
 * even one of the same tar (CVE-2018-15664 and many before it). Links are made with unchanged
 * targets, since in a sandbox they cannot lead out; devices and FIFOs are reported and left out. */
#include "init/files/tar_reader.h"
#include "init/operations.h"

#include "base/cleanup.h"
#include "base/table.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct unpacking {
    struct sandbox *sandbox;
    uint32_t id; /* 0: this entry is free */
    int folder, file;
    bool keeps_holes; /* pages of zeros become holes of the file, which take no memory */
    struct tar_reader reader;
};

static struct unpacking unpackings[2];

static int make_file(struct unpacking *unpacking, int parent, const char *name,
                     const struct tar_member *member, error *err)
{
    unpacking->file =
        openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return unpacking->file < 0 ? fail_os(err, "create '%.100s'", member->path) : 0;
}

static int make_hard_link(const struct unpacking *unpacking, int parent, const char *name,
                          const struct tar_member *member, error *err)
{
    auto_fd from = -1;
    const char *from_name = NULL;
    if (open_parent(unpacking->folder, member->link, false, &from, &from_name, err) < 0)
        return -1;
    if (linkat(from, from_name, parent, name, 0) < 0)
        return fail_os(err, "link '%.80s' to '%.80s'", member->path, member->link);
    return 0;
}

static int make_inner_folder(int parent, const char *name, const struct tar_member *member,
                             error *err)
{
    struct stat there;
    mode_t before = umask(0);
    int made = mkdirat(parent, name, member->mode | 0700);
    (void) umask(before);
    if (made == 0)
        return 0;
    if (errno == EEXIST && fstatat(parent, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(there.st_mode))
        return 0;
    errno = EEXIST;
    return fail_os(err, "make folder '%.100s'", member->path);
}

static void tell_skipped(const struct unpacking *unpacking, const struct tar_member *member)
{
    struct agent_skipped skipped = { .reason = AGENT_SKIP_SPECIAL };
    send_frame(unpacking->sandbox, AGENT_SKIPPED, 0, unpacking->id, &skipped, sizeof skipped,
               member->path, strlen(member->path));
}

static int on_member(void *context, const struct tar_member *member, error *err)
{
    struct unpacking *unpacking = context;
    auto_fd parent = -1;
    const char *name = NULL;
    if (member->type == TAR_SPECIAL) {
        tell_skipped(unpacking, member);
        return 0;
    }
    if (member->path[0] == '\0') /* the folder itself */
        return 0;
    if (open_parent(unpacking->folder, member->path, true, &parent, &name, err) < 0)
        return -1;
    if (member->type == TAR_FOLDER)
        return make_inner_folder(parent, name, member, err);
    if (unlinkat(parent, name, 0) < 0 && errno != ENOENT)
        return fail_os(err, "replace '%.100s'", member->path);
    if (member->type == TAR_HARD_LINK)
        return make_hard_link(unpacking, parent, name, member, err);
    if (member->type == TAR_FILE)
        return make_file(unpacking, parent, name, member, err);
    if (symlinkat(member->link, parent, name) < 0)
        return fail_os(err, "link '%.100s'", member->path);
    return 0;
}

static bool is_zero(const char *bytes, size_t size)
{
    return size > 0 && bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

static int on_hole(void *context, uint64_t size, error *err)
{
    const struct unpacking *unpacking = context;
    return lseek(unpacking->file, (off_t) size, SEEK_CUR) < 0
               ? fail_os(err, "leave a hole in '%.100s'", unpacking->reader.member.path)
               : 0;
}

static int on_bytes(void *context, const void *bytes, size_t size, error *err)
{
    const struct unpacking *unpacking = context;
    if (unpacking->keeps_holes && is_zero(bytes, size))
        return on_hole(context, size, err);
    for (const char *at = bytes; size > 0;) {
        ssize_t put = write(unpacking->file, at, size);
        if (put < 0)
            return fail_os(err, "write '%.100s'", unpacking->reader.member.path);
        at += put;
        size -= (size_t) put;
    }
    return 0;
}

static int on_member_end(void *context, const struct tar_member *member, error *err)
{
    struct unpacking *unpacking = context;
    struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = member->mtime } };
    if (unpacking->file < 0)
        return 0;
    auto_fd file = take_fd(&unpacking->file);
    if (unpacking->keeps_holes && ftruncate(file, (off_t) member->size) < 0)
        return fail_os(err, "give '%.100s' its size", member->path);
    if (fchmod(file, member->mode) < 0 || futimens(file, times) < 0)
        return fail_os(err, "set mode and time of '%.100s'", member->path);
    return 0;
}

static struct tar_user user_of(struct unpacking *unpacking)
{
    return (struct tar_user){
        .context = unpacking,
        .member = on_member,
        .bytes = on_bytes,
        .member_end = on_member_end,
        .hole = unpacking->keeps_holes ? on_hole : NULL,
    };
}

/* Reports an error in the tar itself as one of the caller. */
static int as_invalid(int done, error *err)
{
    if (done < 0 && err->os == 0)
        err->os = EINVAL;
    return done;
}

static int unpack_data(struct sandbox *sandbox, struct operation *operation, const void *bytes,
                       size_t size, error *err)
{
    (void) sandbox;
    struct unpacking *unpacking = operation->room;
    struct tar_user user = user_of(unpacking);
    return as_invalid(tar_reader_take(&unpacking->reader, bytes, size, &user, err), err);
}

static int unpack_end(struct sandbox *sandbox, struct operation *operation, error *err)
{
    (void) sandbox;
    struct unpacking *unpacking = operation->room;
    return tar_reader_end(&unpacking->reader, err) < 0 ? as_invalid(-1, err) : OPERATION_ENDS;
}

static void close_unpack(struct operation *operation)
{
    struct unpacking *unpacking = operation->room;
    close_fd(&unpacking->file);
    (void) close(unpacking->folder);
    unpacking->id = 0;
}

static const struct operation_kind being_unpacked = { .data = unpack_data,
                                                      .end = unpack_end,
                                                      .close = close_unpack };

static struct unpacking *take_unpacking(struct sandbox *sandbox, uint32_t id)
{
    for_each(unpacking, unpackings) {
        if (unpacking->id != 0)
            continue;
        unpacking->sandbox = sandbox;
        unpacking->id = id;
        unpacking->file = -1;
        unpacking->keeps_holes = false;
        tar_reader_open(&unpacking->reader);
        return unpacking;
    }
    return NULL;
}

/* Opens the folder, or makes it. Links in its path are followed inside the root. */
static int open_target(struct sandbox *sandbox, const char *path, error *err)
{
    error missing;
    int folder = open_path(sandbox, path, O_RDONLY | O_DIRECTORY, &missing);
    if (folder >= 0)
        return folder;
    if (missing.os != ENOENT) {
        *err = missing;
        return -1;
    }
    if (make_folder(sandbox, path, err) < 0)
        return -1;
    return open_path(sandbox, path, O_RDONLY | O_DIRECTORY, err);
}

int begin_unpack(struct sandbox *sandbox, const struct frame *in, error *err)
{
    struct operation *operation;
    auto_fd folder = open_target(sandbox, (const char *) in->payload, err);
    if (folder < 0)
        return -1;
    struct unpacking *unpacking = take_unpacking(sandbox, in->head.id);
    if (!unpacking) {
        errno = EAGAIN;
        return fail_os(err, "%zu tars are being unpacked already", COUNT_OF(unpackings));
    }
    if (operation_begin(in->head.id, &being_unpacked, &operation, err) < 0) {
        unpacking->id = 0;
        return -1;
    }
    operation->room = unpacking;
    unpacking->folder = take_fd(&folder);
    send_frame(sandbox, AGENT_OPENED, 0, in->head.id, NULL, 0, NULL, 0);
    return 0;
}

static short wants_bytes(const struct operation *operation)
{
    (void) operation;
    return POLLIN;
}

static int drain_pipe(struct sandbox *sandbox, struct operation *operation, short events,
                      error *err)
{
    static char block[AGENT_PAYLOAD_MAX];
    enum { PIPE_TURN = 16 };
    (void) events;
    for (unsigned turn = 0; turn < PIPE_TURN; turn++) {
        ssize_t got = read(operation->fd, block, sizeof block);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return OPERATION_GOES_ON;
        if (got < 0)
            return fail_os(err, "read what was kept");
        if (got == 0)
            return unpack_end(sandbox, operation, err);
        if (unpack_data(sandbox, operation, block, (size_t) got, err) < 0)
            return -1;
    }
    return OPERATION_GOES_ON;
}

static const struct operation_kind being_loaded = { .wants = wants_bytes,
                                                    .ready = drain_pipe,
                                                    .close = close_unpack };

/* Empties the writable places first, so that what the tar does not have is gone afterwards: also
 * what the template has put into the new home. */
static int empty_places(const struct sandbox *sandbox, error *err)
{
    for_each(place, scratch_places) {
        char path[32];
        (void) snprintf(path, sizeof path, "/%s", *place);
        auto_fd folder = open_path(sandbox, path, O_RDONLY | O_DIRECTORY, err);
        if (folder < 0 || empty_folder(folder, err) < 0)
            return under(err, "empty '%s'", path);
    }
    return 0;
}

int begin_load(struct sandbox *sandbox, const struct frame *in, error *err)
{
    struct operation *operation;
    auto_fd pipe = fcntl(in->fd, F_DUPFD_CLOEXEC, 3);
    if (pipe < 0 || fcntl(pipe, F_SETFL, O_NONBLOCK) < 0)
        return fail_os(err, "take the pipe");
    if (empty_places(sandbox, err) < 0)
        return -1;
    auto_fd root = open_path(sandbox, "/", O_RDONLY | O_DIRECTORY, err);
    struct unpacking *unpacking = root < 0 ? NULL : take_unpacking(sandbox, in->head.id);
    if (!unpacking)
        return root < 0 ? -1 : fail(err, ERR_BUSY, "too many tars are being unpacked already");
    if (operation_begin(in->head.id, &being_loaded, &operation, err) < 0) {
        unpacking->id = 0;
        return -1;
    }
    operation->room = unpacking;
    operation->fd = take_fd(&pipe);
    unpacking->keeps_holes = true;
    unpacking->folder = take_fd(&root);
    return 0;
}
