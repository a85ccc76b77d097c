/* blobs.c - a table by hash, a list by age. */
#include "daemon/blobs.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "daemon/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUCKETS = 4096 };

struct blob {
    char name[BLOB_NAME_SIZE];
    char owner[BLOB_OWNER_SIZE];
    uint64_t size;
    int fd;           /* -1: it lies in the folder */
    const char *mime; /* one of the table's */
    struct blob *same_bucket;
    struct blob *older, *newer;
};

struct blob_store {
    int folder; /* -1: in memory */
    uint64_t bytes, bytes_most;
    struct blob *buckets[BUCKETS];
    struct blob *oldest, *newest;
};

static bool name_is_valid(const char *name)
{
    return strspn(name, "0123456789abcdef") == BLOB_NAME_SIZE - 1 &&
           name[BLOB_NAME_SIZE - 1] == '\0';
}

/* Its name in the folder: the hash, and behind a dot whose it is. */
enum { FILE_NAME_SIZE = BLOB_NAME_SIZE + BLOB_OWNER_SIZE };

static void name_of_file(const char *owner, const char *name, char ret_file[FILE_NAME_SIZE])
{
    (void) snprintf(ret_file, FILE_NAME_SIZE, "%s%s%s", name, owner[0] ? "." : "", owner);
}

static bool parse_file_name(const char *file, char ret_owner[BLOB_OWNER_SIZE],
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
    return &store->buckets[number % BUCKETS];
}

static struct blob *find(struct blob_store *store, const char *owner, const char *name)
{
    struct blob *blob = *bucket_of(store, name);
    while (blob && (strcmp(blob->name, name) != 0 || strcmp(blob->owner, owner) != 0))
        blob = blob->same_bucket;
    return blob;
}

static void leave_line(struct blob_store *store, struct blob *blob)
{
    *(blob->older ? &blob->older->newer : &store->oldest) = blob->newer;
    *(blob->newer ? &blob->newer->older : &store->newest) = blob->older;
    blob->older = blob->newer = NULL;
}

static void join_line(struct blob_store *store, struct blob *blob)
{
    blob->older = store->newest;
    *(store->newest ? &store->newest->newer : &store->oldest) = blob;
    store->newest = blob;
}

static void remove_blob(struct blob_store *store, struct blob *blob, bool from_disk)
{
    leave_line(store, blob);
    struct blob **at = bucket_of(store, blob->name);
    while (*at != blob)
        at = &(*at)->same_bucket;
    *at = blob->same_bucket;
    store->bytes -= blob->size;
    if (blob->fd >= 0)
        (void) close(blob->fd);
    else if (from_disk) {
        char file[FILE_NAME_SIZE];
        name_of_file(blob->owner, blob->name, file);
        (void) unlinkat(store->folder, file, 0);
    }
    free(blob);
}

/* Takes  the descriptor in `from`; -1 for a file in the folder. */
static int add_blob(struct blob_store *store, const char *owner, const char *name,
                    const struct blob_view *from, error *err)
{
    struct blob *blob = calloc(1, sizeof *blob);
    if (!blob) {
        close_fd(&from->fd);
        return fail(err, ERR_SYSTEM, "no memory to keep a blob");
    }
    memcpy(blob->name, name, sizeof blob->name);
    memcpy(blob->owner, owner, strlen(owner) + 1);
    blob->size = from->size;
    blob->fd = from->fd;
    blob->mime = from->mime;
    blob->same_bucket = *bucket_of(store, name);
    *bucket_of(store, name) = blob;
    join_line(store, blob);
    store->bytes += blob->size;
    while (store->bytes > store->bytes_most && store->oldest != blob)
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): oldest moves on with each call */
        remove_blob(store, store->oldest, true);
    return 0;
}

static void take_over_file(struct blob_store *store, const char *file)
{
    struct stat found;
    error err;
    char owner[BLOB_OWNER_SIZE], name[BLOB_NAME_SIZE];
    if (!parse_file_name(file, owner, name) ||
        fstatat(store->folder, file, &found, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(found.st_mode))
        return;
    struct blob_view view = { .fd = -1,
                              .size = (uint64_t) found.st_size,
                              .mime = "application/octet-stream" };
    (void) add_blob(store, owner, name, &view, &err);
}

/* What an earlier daemon has kept. */
static void take_over(struct blob_store *store)
{
    int folder = openat(store->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = folder < 0 ? NULL : fdopendir(folder);
    if (!entries) {
        close_fd(&folder);
        return;
    }
    const struct dirent *entry;
    while ((entry = readdir(entries))) /* NOLINT(concurrency-mt-unsafe): a stream of our own */
        take_over_file(store, entry->d_name);
    (void) closedir(entries);
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

int blobs_open(const char *state, uint64_t bytes_most, struct blob_store **ret_store, error *err)
{
    struct blob_store *store = calloc(1, sizeof *store);
    if (!store)
        return fail(err, ERR_SYSTEM, "no memory for the blob store");
    store->bytes_most = bytes_most;
    store->folder = open_folder(state);
    if (store->folder >= 0)
        take_over(store);
    *ret_store = store;
    return 0;
}

void blobs_close(struct blob_store *store)
{
    if (!store)
        return;
    while (store->oldest)
        remove_blob(store, store->oldest, false);
    close_fd(&store->folder);
    free(store);
}

int blobs_scratch(struct blob_store *store, error *err)
{
    int fd = store->folder >= 0 ? openat(store->folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)
                                : memfd_create("glovebox-blob", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return fd < 0 ? fail_os(err, "make a place in the state folder") : fd;
}

int blob_begin(struct blob_store *store, const char *owner, struct blob_writer *writer, error *err)
{
    *writer = (struct blob_writer){ .store = store };
    (void) snprintf(writer->owner, sizeof writer->owner, "%s", owner);
    writer->fd = blobs_scratch(store, err);
    if (writer->fd < 0)
        return -1;
    (void) crypto_hash_sha256_init(&writer->hash);
    return 0;
}

int blob_add(struct blob_writer *writer, const void *data, size_t size, error *err)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < size && writer->head_size < sizeof writer->head; i++)
        writer->head[writer->head_size++] = at[i];
    (void) crypto_hash_sha256_update(&writer->hash, data, size);
    for (size_t left = size; left > 0;) {
        ssize_t wrote = write(writer->fd, at, left);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return fail_os(err, "keep an artifact");
        at += wrote;
        left -= (size_t) wrote;
    }
    writer->size += size;
    return 0;
}

/* Gives the nameless file its name; one of the same name holds the same bytes. */
static int name_file(const struct blob_store *store, int fd, const char *name, error *err)
{
    char path[64];
    (void) snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, path, store->folder, name, AT_SYMLINK_FOLLOW) < 0 && errno != EEXIST)
        return fail_os(err, "name an artifact");
    return 0;
}

int blob_keep(struct blob_writer *writer, const char *mime, char ret_name[BLOB_NAME_SIZE],
              error *err)
{
    auto_fd fd = take_fd(&writer->fd);
    unsigned char digest[crypto_hash_sha256_BYTES];
    (void) crypto_hash_sha256_final(&writer->hash, digest);
    char name[BLOB_NAME_SIZE];
    (void) sodium_bin2hex(name, sizeof name, digest, sizeof digest);

    struct blob_store *store = writer->store;
    struct blob *known = find(store, writer->owner, name);
    if (known) {
        known->mime = mime;
        leave_line(store, known);
        join_line(store, known);
        memcpy(ret_name, name, sizeof name);
        return BLOB_KNOWN;
    }
    char file[FILE_NAME_SIZE];
    name_of_file(writer->owner, name, file);
    struct blob_view view = { .fd = -1, .size = writer->size, .mime = mime };
    if (store->folder < 0)
        view.fd = take_fd(&fd);
    else if (name_file(store, fd, file, err) < 0)
        return -1;
    if (add_blob(store, writer->owner, name, &view, err) < 0)
        return -1;
    memcpy(ret_name, name, sizeof name);
    return 0;
}

void blob_abandon(struct blob_writer *writer)
{
    close_fd(&writer->fd);
    writer->fd = -1;
}

int blob_open(struct blob_store *store, const char *owner, const char *name,
              struct blob_view *ret_view, error *err)
{
    struct blob *blob = name_is_valid(name) ? find(store, owner, name) : NULL;
    if (!blob)
        return fail(err, ERR_NOT_FOUND,
                    "no artifact has this name; artifacts are kept for a while only");
    int fd;
    if (blob->fd >= 0) {
        char path[64]; /* a new description: readers do not share a position */
        (void) snprintf(path, sizeof path, "/proc/self/fd/%d", blob->fd);
        fd = open(path, O_RDONLY | O_CLOEXEC);
    } else {
        char file[FILE_NAME_SIZE];
        name_of_file(blob->owner, blob->name, file);
        fd = openat(store->folder, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    }
    if (fd < 0)
        return fail_os(err, "open artifact %s", name);
    leave_line(store, blob);
    join_line(store, blob);
    *ret_view = (struct blob_view){ .fd = fd, .size = blob->size, .mime = blob->mime };
    return 0;
}

int blob_hand_over(struct blob_store *store, const char *from, const char *name, const char *to,
                   error *err)
{
    struct blob *blob = find(store, from, name);
    struct blob *known = find(store, to, name);
    if (blob && known) { /* the same bytes */
        known->mime = blob->mime;
        leave_line(store, known);
        join_line(store, known);
        remove_blob(store, blob, true);
        return 0;
    }
    if (!blob)
        return 0;
    if (blob->fd < 0) {
        char files[2][FILE_NAME_SIZE];
        name_of_file(from, name, files[0]);
        name_of_file(to, name, files[1]);
        if (renameat(store->folder, files[0], store->folder, files[1]) < 0)
            return fail_os(err, "hand over artifact %s", name);
    }
    (void) snprintf(blob->owner, sizeof blob->owner, "%s", to);
    return 0;
}

void blob_forget(struct blob_store *store, const char *owner, const char *name)
{
    struct blob *blob = find(store, owner, name);
    if (blob)
        remove_blob(store, blob, true);
}
