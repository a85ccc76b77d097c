/* blob_disk.c - disk work of the store, off the event loop: syncs and removes files in groups, and
 * checks the files of an earlier daemon (disk_worker.h). After a power cut a file may have its name
 * but not its bytes. */
#include "engine/store/blobs_internal.h"

#include "base/cleanup.h"
#include "engine/observe/log.h"
#include "engine/observe/loop_monitor.h"
#include "ledger/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TURN_BYTES = 4 * 1024 * 1024, READ_BYTES = 64 * 1024 };

int blob_damaged(struct blob_store *store, struct blob *blob, error *err)
{
    (void) fail(err, ERR_NOT_FOUND,
                "artifact %.16s… was damaged on the disk, and is removed: its bytes do not have "
                "the hash of its name; make it again",
                blob->name);
    log_event(ARTIFACT_DAMAGED, TEXT("sha256", blob->name), COUNT("bytes", (int64_t) blob->size));
    store->usage.damaged++;
    blob_remove(store, blob, true);
    return -1;
}

/* --- syncs ------------------------------------------------------------------------------------ */

static void sync_next(struct blob_store *store);

/* Syncs a file. One that does not exist was removed meanwhile, or handed over and queued again. */
static bool sync_file(int folder, const char *file, bool is_begun)
{
    auto_fd fd = openat(folder, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT;
    if (is_begun)
        return fdatasync(fd) == 0;
    (void) sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    return false;
}

/* Another file may have that name now: the same bytes, made again. */
void blobs_remove(const struct blob_store *store, struct blob **list)
{
    for (struct blob *blob; (blob = *list); free(blob)) {
        char file[BLOB_FILE_SIZE];
        struct stat found;
        *list = blob->same_bucket;
        blob_file_name(blob->owner, blob->name, file);
        if (fstatat(store->folder, file, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
            found.st_ino == blob->inode)
            (void) unlinkat(store->folder, file, 0);
    }
}

/* On a disk thread. Writeback of all files is started first, which allocates their blocks, so that
 * the file system's journal is waited for once and not once per file. The name of a file that could
 * not be synced stays in the list. */
static void sync_files(uv_work_t *work)
{
    struct blob_store *store = work->data;
    for (int is_begun = 0; is_begun <= 1; is_begun++)
        for (size_t at = 0; at < store->in_flight.size; at += BLOB_FILE_SIZE) {
            char *file = store->in_flight.data + at;
            if (file[0] && sync_file(store->folder, file, is_begun))
                file[0] = '\0';
        }
    store->sync_failure = (error){ 0 };
    if (fsync(store->folder) < 0)
        (void) fail_os(&store->sync_failure, "sync the folder of artifacts");
}

/* Finds a blob by its file name (blob_file_name()), also one that is held for a run. */
static struct blob *blob_of_file(struct blob_store *store, const char *file)
{
    char name[BLOB_NAME_SIZE];
    const char *owner = file + strnlen(file, BLOB_NAME_SIZE - 1);
    (void) snprintf(name, sizeof name, "%s", file);
    return file[0] ? blob_find(store, *owner == '.' ? owner + 1 : "", name) : NULL;
}

/* The kernel may have dropped pages that it could not write: such a file is removed. */
static void files_are_synced(uv_work_t *work, int status)
{
    struct blob_store *store = work->data;
    error unused;
    (void) status; /* it is never cancelled */
    (void) loop_enter(CAUSE_DISK, NULL);
    for (size_t at = 0; at < store->in_flight.size; at += BLOB_FILE_SIZE) {
        struct blob *blob = blob_of_file(store, store->in_flight.data + at);
        if (blob)
            (void) blob_damaged(store, blob, &unused);
    }
    if (store->sync_failure.code != ERR_NONE)
        log_event(ARTIFACTS_NOT_ON_DISK, TEXT("cause", store->sync_failure.text));
    bytes_done(&store->in_flight);
    store->is_syncing = false;
    sync_next(store);
}

/* Queued with the jobs that give files their names. */
static void remove_files(void *user)
{
    struct blob_store *store = user;
    blobs_remove(store, &store->removed);
}

static void files_are_removed(void *user)
{
    struct blob_store *store = user;
    (void) uv_queue_work(store->loop, &store->sync, sync_files, files_are_synced);
}

static void on_time(uv_timer_t *timer)
{
    struct blob_store *store = timer->data;
    store->in_flight = store->waiting;
    store->waiting = (struct bytes){ 0 };
    store->removed = store->leaving;
    store->leaving = NULL;
    store->is_syncing = true;
    store->removal = (struct disk_job){ remove_files, files_are_removed, store, NULL };
    disk_worker_do(store->loop, &store->removal);
}

static void sync_next(struct blob_store *store)
{
    if ((store->waiting.size > 0 || store->leaving) && !store->is_syncing &&
        !uv_is_active((const uv_handle_t *) &store->timer) &&
        !uv_is_closing((const uv_handle_t *) &store->timer))
        (void) uv_timer_start(&store->timer, on_time, BLOBS_SYNC_MS, 0);
}

void blob_sync_soon(struct blob_store *store, const struct blob *blob)
{
    char file[BLOB_FILE_SIZE] = "";
    if (!store->loop || blob->fd >= 0)
        return;
    blob_file_name(blob->owner, blob->name, file);
    bytes_add(&store->waiting, file, sizeof file);
    sync_next(store);
}

void blob_leave(struct blob_store *store, struct blob *blob)
{
    blob->same_bucket = store->leaving;
    store->leaving = blob;
    if (store->loop)
        sync_next(store);
    else
        blobs_remove(store, &store->leaving);
}

void blobs_sync_on(struct blob_store *store, uv_loop_t *loop)
{
    store->loop = loop;
    (void) uv_timer_init(loop, &store->timer);
    store->timer.data = store->sync.data = store;
    uv_unref((uv_handle_t *) &store->timer);
}

void blobs_leave(struct blob_store *store)
{
    if (store && store->loop)
        uv_close((uv_handle_t *) &store->timer, NULL);
}

/* --- checks ----------------------------------------------------------------------------------- */

struct blob_check {
    struct blob_store *store;
    char owner[BLOB_OWNER_SIZE], name[BLOB_NAME_SIZE];
    struct disk_job job;
    int fd;
    struct sha256 hash;
    uint64_t size;
    bool is_at_end;
    error failure;
    void (*done)(void *user, const error *why);
    void *user;
};

/* On a disk thread: hashes a part, then other jobs run. */
static void hash_part(void *user)
{
    struct blob_check *check = user;
    static unsigned char part[READ_BYTES]; /* only one job runs at a time */
    for (uint64_t end = check->size + TURN_BYTES; check->size < end && !check->is_at_end;) {
        ssize_t got = read(check->fd, part, sizeof part);
        if (got < 0) {
            (void) fail_os(&check->failure, "read artifact %.16s…", check->name);
            return;
        }
        sha256_add(&check->hash, part, (size_t) got);
        check->size += (uint64_t) got;
        check->is_at_end = got == 0;
    }
}

static bool has_its_hash(struct blob_check *check)
{
    char name[BLOB_NAME_SIZE];
    sha256_end_text(&check->hash, name);
    return strcmp(name, check->name) == 0;
}

static void conclude(struct blob_check *check, struct blob *blob)
{
    if (blob && !blob->is_checked && check->failure.code == ERR_NONE) {
        bool is_it = has_its_hash(check) && check->size == blob->size;
        if (is_it)
            blob->is_checked = true;
        else
            (void) blob_damaged(check->store, blob, &check->failure);
    }
    if (check->done)
        check->done(check->user, check->failure.code == ERR_NONE ? NULL : &check->failure);
    (void) close(check->fd);
    free(check);
}

static void part_is_hashed(void *user)
{
    struct blob_check *check = user;
    struct blob *blob = blob_find(check->store, check->owner, check->name);
    bool is_needed = check->done && blob && !blob->is_checked;
    if (is_needed && !check->is_at_end && check->failure.code == ERR_NONE)
        disk_worker_do(check->store->loop, &check->job);
    else
        conclude(check, check->is_at_end ? blob : NULL);
}

int blob_check(struct blob_store *store, const char *owner, const char *name,
               struct blob_check **ret_check, error *err)
{
    struct blob *blob = blob_name_is_valid(name) ? blob_find(store, owner, name) : NULL;
    if (!blob || blob->fd >= 0 || blob->is_checked || !store->loop)
        return 0;
    auto_fd fd = blob_open_file(store, blob, err);
    if (fd < 0)
        return -1;
    struct blob_check *check = calloc(1, sizeof *check);
    if (!check)
        return fail(err, ERR_SYSTEM, "no memory to check an artifact");
    check->store = store;
    memcpy(check->owner, blob->owner, sizeof check->owner);
    memcpy(check->name, blob->name, sizeof check->name);
    check->fd = take_fd(&fd);
    check->job = (struct disk_job){ hash_part, part_is_hashed, check, NULL };
    sha256_begin(&check->hash);
    disk_worker_do(store->loop, &check->job);
    *ret_check = check;
    return 1;
}

void blob_check_tell(struct blob_check *check, void (*done)(void *user, const error *why),
                     void *user)
{
    check->done = done;
    check->user = user;
}
