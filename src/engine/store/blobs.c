/* blobs.c - a hash table of blobs. */
#include "engine/store/blobs_internal.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/write_whole.h"
#include "ledger/sha256.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A temporary file of this age was left by a daemon that died. */
static const int64_t left_ms = INT64_C(86400) * 1000;

bool blob_name_is_valid(const char *name)
{
    return strspn(name, "0123456789abcdef") == BLOB_NAME_SIZE - 1 &&
           name[BLOB_NAME_SIZE - 1] == '\0';
}

void blob_file_name(const char *owner, const char *name, char ret_file[BLOB_FILE_SIZE])
{
    (void) snprintf(ret_file, BLOB_FILE_SIZE, "%s%s%s", name, owner[0] ? "." : "", owner);
}

static bool blob_file_name_read(const char *file, char ret_owner[BLOB_OWNER_SIZE],
                                char ret_name[BLOB_NAME_SIZE])
{
    size_t digits = strspn(file, "0123456789abcdef");
    const char *owner = file + digits + (file[digits] == '.');
    if (digits != BLOB_NAME_SIZE - 1 ||
        (file[digits] &&
         (strspn(owner, "0123456789abcdef") != BLOB_OWNER_SIZE - 1 || owner[BLOB_OWNER_SIZE - 1])))
        return false;
    (void) snprintf(ret_name, BLOB_NAME_SIZE, "%s", file);
    (void) snprintf(ret_owner, BLOB_OWNER_SIZE, "%s", owner);
    return true;
}

static struct blob **bucket_of(struct blob_store *store, const char *name)
{
    unsigned number = 0;
    for (int i = 0; i < 3; i++) {
        unsigned char digit = (unsigned char) name[i];
        number = number << 4 | (unsigned) (digit <= '9' ? digit - '0' : digit - 'a' + 10);
    }
    return &store->buckets[number % BLOB_BUCKETS];
}

struct blob *blob_find(struct blob_store *store, const char *owner, const char *name)
{
    struct blob *blob = *bucket_of(store, name);
    while (blob && (strcmp(blob->name, name) != 0 || strcmp(blob->owner, owner) != 0))
        blob = blob->same_bucket;
    return blob;
}

void blob_remove(struct blob_store *store, struct blob *blob, bool from_disk)
{
    blob_share_leave(store, blob);
    (void) list_remove(*bucket_of(store, blob->name), blob, same_bucket);
    close_fd(&blob->fd);
    if (blob->fd < 0 && from_disk)
        blob_leave(store, blob);
    else
        free(blob);
}

/* Takes  the descriptor in `given`; -1: the blob is a file in the folder. */
static int add_blob(struct blob_store *store, const struct blob *given, const char *payer,
                    struct blob **ret_blob, error *err)
{
    struct blob *blob = calloc(1, sizeof *blob);
    if (!blob) {
        close_fd(&given->fd);
        return fail(err, ERR_SYSTEM, "no memory to keep a blob");
    }
    *blob = *given;
    if (blob_share_join(store, blob, payer, err) < 0) {
        close_fd(&blob->fd);
        free(blob);
        return -1;
    }
    blob->same_bucket = *bucket_of(store, blob->name);
    *bucket_of(store, blob->name) = blob;
    blob_shares_hold(store, blob);
    *ret_blob = blob;
    return 0;
}

/* A file with another name was held for a run, or was about to be renamed. Its daemon may still be
 * ending, for less than a day. */
static void take_over_file(struct blob_store *store, const char *file)
{
    struct stat found;
    error err;
    struct blob blob = { .fd = -1, .mime = "application/octet-stream" }, *kept;
    if (fstatat(store->folder, file, &found, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(found.st_mode))
        return;
    blob.size = (uint64_t) found.st_size;
    blob.inode = found.st_ino;
    if (blob_file_name_read(file, blob.owner, blob.name))
        (void) add_blob(store, &blob, blob.owner, &kept, &err);
    else if ((int64_t) found.st_mtime * 1000 + left_ms < wall_clock_ms())
        (void) unlinkat(store->folder, file, 0);
}

/* Adds the blobs that an earlier daemon stored. */
static int take_over(struct blob_store *store, error *err)
{
    int folder = openat(store->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = folder < 0 ? NULL : fdopendir(folder);
    if (!entries) {
        close_fd(&folder);
        return fail_os(err, "list the artifacts");
    }
    const struct dirent *entry;
    while (errno = 0, (entry = readdir(entries))) /* NOLINT(concurrency-mt-unsafe): our own */
        take_over_file(store, entry->d_name);
    int result = errno == 0 ? 0 : fail_os(err, "list the artifacts");
    (void) closedir(entries);
    return result;
}

static int open_folder(const char *state)
{
    auto_fd above = state ? open(state, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (above < 0)
        return -1;
    (void) mkdirat(above, "blobs", 0700);
    auto_fd folder = openat(above, "blobs", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (folder < 0)
        return -1;
    auto_fd tried = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return tried < 0 ? -1 : take_fd(&folder);
}

int blobs_open(const char *state, const struct blob_bounds *bounds, struct blob_store **ret_store,
               error *err)
{
    struct blob_store *store = calloc(1, sizeof *store);
    if (!store)
        return fail(err, ERR_SYSTEM, "no memory for the blob store");
    store->bounds = *bounds;
    store->folder = open_folder(state);
    *ret_store = store;
    return store->folder < 0 ? 0 : take_over(store, err);
}

void blobs_bound(struct blob_store *store, const struct blob_bounds *bounds)
{
    store->bounds = *bounds;
    blob_shares_hold(store, NULL);
}

const struct blob_usage *blobs_usage(const struct blob_store *store)
{
    return &store->usage;
}

void blobs_close(struct blob_store *store)
{
    if (!store)
        return;
    while (store->shares)
        blob_remove(store, store->shares->oldest, false);
    blobs_remove(store, &store->leaving);
    bytes_done(&store->waiting);
    bytes_done(&store->in_flight);
    close_fd(&store->folder);
    free(store);
}

int blobs_scratch(struct blob_store *store, error *err)
{
    int fd = store->folder >= 0 ? openat(store->folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)
                                : memfd_create("glovebox-blob", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return fd < 0 ? fail_os(err, "make a place in the state folder") : fd;
}

void blob_begin(struct blob_store *store, const struct blob_owner *owner,
                struct blob_writer *writer)
{
    *writer = (struct blob_writer){ .store = store, .fd = -1 };
    (void) snprintf(writer->owner, sizeof writer->owner, "%s", owner->name);
    (void) snprintf(writer->payer, sizeof writer->payer, "%s", owner->payer);
    sha256_begin(&writer->hash);
}

int blob_add(struct blob_writer *writer, const void *data, size_t size, error *err)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < size && writer->head_size < sizeof writer->head; i++)
        writer->head[writer->head_size++] = at[i];
    sha256_add(&writer->hash, data, size);
    writer->size += size;
    bytes_add(&writer->held, data, size);
    return writer->held.failed ? fail(err, ERR_SYSTEM, "no memory to keep an artifact") : 0;
}

/* Gives the nameless file its name. An existing file of this name has no known owner, or is
 * damaged: it is replaced. */
static int name_file(const struct blob_store *store, int fd, const char *name, error *err)
{
    static const char in_flight[] = "new";
    char path[64];
    (void) snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, path, store->folder, name, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    if (errno != EEXIST)
        return fail_os(err, "name an artifact");
    (void) unlinkat(store->folder, in_flight, 0);
    if (linkat(AT_FDCWD, path, store->folder, in_flight, AT_SYMLINK_FOLLOW) < 0 ||
        renameat(store->folder, in_flight, store->folder, name) < 0)
        return fail_os(err, "name an artifact");
    return 0;
}

/* Is its size still that of the blob? A truncated file is not used. */
static bool is_whole(const struct blob_store *store, const struct blob *blob)
{
    char file[BLOB_FILE_SIZE];
    struct stat found;
    if (blob->fd >= 0)
        return true;
    blob_file_name(blob->owner, blob->name, file);
    return blob->is_checked && fstatat(store->folder, file, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(found.st_mode) && (uint64_t) found.st_size == blob->size;
}

int blob_write(struct blob_writer *writer, const char *name, error *err)
{
    char file[BLOB_FILE_SIZE];
    struct stat made;
    if (writer->fd < 0 && (writer->fd = blobs_scratch(writer->store, err)) < 0)
        return -1;
    if (write_whole(writer->fd, writer->held.data, writer->held.size) < 0)
        return fail_os(err, "keep an artifact");
    bytes_done(&writer->held);
    if (!name || writer->store->folder < 0)
        return 0;
    blob_file_name(writer->owner, name, file);
    auto_fd fd = take_fd(&writer->fd);
    if (fstat(fd, &made) < 0)
        return fail_os(err, "keep an artifact");
    writer->inode = made.st_ino;
    return name_file(writer->store, fd, file, err);
}

static int keep_known(struct blob_writer *writer, struct blob *known, const char *mime)
{
    blob_abandon(writer);
    known->mime = mime;
    blob_share_renew(known);
    return BLOB_KNOWN;
}

int blob_name(struct blob_writer *writer, const char *mime, char ret_name[BLOB_NAME_SIZE])
{
    sha256_end_text(&writer->hash, ret_name);
    struct blob *known = blob_find(writer->store, writer->owner, ret_name);
    return known && is_whole(writer->store, known) ? keep_known(writer, known, mime) : 0;
}

int blob_keep(struct blob_writer *writer, const char *mime, const char *name, error *err)
{
    struct blob_store *store = writer->store;
    struct blob *known = blob_find(store, writer->owner, name);
    if (known && is_whole(store, known)) {
        known->inode = writer->inode; /* the file that has the name now */
        blob_sync_soon(store, known);
        return keep_known(writer, known, mime);
    }
    if (known)
        blob_remove(store, known, false);
    struct blob blob = { .size = writer->size, .mime = mime, .is_checked = true };
    blob.fd = take_fd(&writer->fd); /* a memfd */
    blob.inode = writer->inode;
    memcpy(blob.name, name, sizeof blob.name);
    memcpy(blob.owner, writer->owner, sizeof blob.owner);
    if (add_blob(store, &blob, writer->payer, &known, err) < 0)
        return -1;
    blob_sync_soon(store, known);
    return 0;
}

void blob_abandon(struct blob_writer *writer)
{
    if (writer->store->loop)
        disk_worker_close(writer->store->loop, writer->fd);
    else
        close_fd(&writer->fd);
    writer->fd = -1;
    bytes_done(&writer->held);
}

static int blob_fail_missing(error *err)
{
    return fail(err, ERR_NOT_FOUND,
                "no artifact has this name; artifacts are kept for a while only");
}

int blob_open_file(struct blob_store *store, struct blob *blob, error *err)
{
    char path[BLOB_FILE_SIZE];
    if (blob->fd >= 0) { /* opened anew, so that readers do not share an offset */
        (void) snprintf(path, sizeof path, "/proc/self/fd/%d", blob->fd);
        int copy = open(path, O_RDONLY | O_CLOEXEC);
        return copy < 0 ? fail_os(err, "open artifact %s", blob->name) : copy;
    }
    blob_file_name(blob->owner, blob->name, path);
    int fd = openat(store->folder, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno != ENOENT)
        return fail_os(err, "open artifact %s", blob->name);
    if (fd >= 0)
        return fd;
    blob_remove(store, blob, false); /* another daemon with this folder has removed it */
    return blob_fail_missing(err);
}

int blob_open(struct blob_store *store, const char *owner, const char *name,
              struct blob_view *ret_view, error *err)
{
    struct blob *blob = blob_name_is_valid(name) ? blob_find(store, owner, name) : NULL;
    if (!blob)
        return blob_fail_missing(err);
    if (blob->fd < 0 && !blob->is_checked)
        return fail(err, ERR_INTERNAL, "artifact %s was not checked", name);
    auto_fd fd = blob_open_file(store, blob, err);
    struct stat found;
    if (fd < 0)
        return -1;
    if (fstat(fd, &found) < 0 || (uint64_t) found.st_size != blob->size)
        return blob_damaged(store, blob, err);
    blob_share_renew(blob);
    *ret_view = (struct blob_view){ .fd = take_fd(&fd), .size = blob->size, .mime = blob->mime };
    return 0;
}

int blob_hand_over(struct blob_store *store, const char *from, const char *name, const char *to,
                   error *err)
{
    struct blob *blob = blob_find(store, from, name), *known = blob_find(store, to, name);
    if (!blob)
        return 0;
    if (known && is_whole(store, known)) { /* the same bytes */
        known->mime = blob->mime;
        blob_share_renew(known);
        blob_remove(store, blob, true);
        return 0;
    }
    if (known)
        blob_remove(store, known, true);
    if (blob->fd < 0) {
        char files[2][BLOB_FILE_SIZE];
        blob_file_name(from, name, files[0]);
        blob_file_name(to, name, files[1]);
        if (renameat(store->folder, files[0], store->folder, files[1]) < 0)
            return fail_os(err, "hand over artifact %s", name);
    }
    (void) snprintf(blob->owner, sizeof blob->owner, "%s", to);
    blob_sync_soon(store, blob);
    return 0;
}

void blob_forget(struct blob_store *store, const char *owner, const char *name)
{
    struct blob *blob = blob_find(store, owner, name);
    if (blob)
        blob_remove(store, blob, true);
}
