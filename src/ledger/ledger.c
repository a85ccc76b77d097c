/* ledger.c - the writer of the log. It writes a record, then its hashes; it syncs them to disk,
 * then writes the checkpoint. So a checkpoint only covers what cannot be lost. Records after it are
 * read and hashed again at the next start, and an incomplete one at the end is cut off. */
#include "ledger/ledger_internal.h"

#include "base/cleanup.h"
#include "base/read_at.h"
#include "base/table.h"
#include "ledger/envelope.h"
#include "ledger/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>

enum { LOCK_MAX_MS = 5000, LOCK_LOOK_NS = 100000, ROOM_LOOK_MS = 1000 };

static const uint64_t reserve_max = UINT64_C(4) << 20;

static int read_hash(void *context, uint64_t position, struct merkle_hash *ret, error *err)
{
    const struct ledger *ledger = context;
    ssize_t got = read_at(ledger->tree_file, ret->bytes, sizeof ret->bytes,
                          (off_t) (position * sizeof ret->bytes));
    if (got < 0)
        return fail_os(err, "read the log's tree");
    if (got != sizeof ret->bytes)
        return fail(err, ERR_UNAVAILABLE, "the log's tree ends before hash %" PRIu64, position);
    return 0;
}

/* --- one writer at a time --------------------------------------------------------------------- */

int64_t ledger_lock_max_ms(const struct ledger *ledger)
{
    return ledger->settings.lock_max_ms > 0 ? ledger->settings.lock_max_ms : LOCK_MAX_MS;
}

bool ledger_flock(int file, int64_t max_ms)
{
    deadline end = { 0 };
    while (flock(file, LOCK_EX | LOCK_NB) < 0) {
        if (errno == EINTR)
            continue;
        if (errno != EWOULDBLOCK)
            return false;
        if (end.at_ms == 0)
            end = deadline_in(max_ms);
        if (deadline_has_passed(end))
            return false;
        (void) nanosleep(&(struct timespec){ .tv_nsec = LOCK_LOOK_NS }, NULL);
    }
    return true;
}

/* A writer holds the lock for less than a millisecond, or longer if it gets no processor time. One
 * that is stopped must not block others: they wait for the full time once, then a tenth of that. */
int ledger_lock(struct ledger *ledger, error *err)
{
    int64_t max_ms = ledger_lock_max_ms(ledger);
    if (ledger->holder_is_stuck)
        max_ms /= 10;
    if (!ledger_flock(ledger->lock, max_ms)) {
        if (errno != EWOULDBLOCK)
            return fail_os(err, "lock the log");
        ledger->holder_is_stuck = true;
        return fail(err, ERR_BUSY, "another glovebox has held the log for %d ms; is it stopped?",
                    (int) max_ms);
    }
    ledger->is_locked = true;
    ledger->holder_is_stuck = false;
    if (ledger->key_inode == 0 || ledger_refresh_key(ledger, err) == 0)
        return 0;
    (void) flock(ledger->lock, LOCK_UN);
    ledger->is_locked = false;
    return -1;
}

bool ledger_is_held(const struct ledger *ledger)
{
    if (ledger->is_locked)
        return false;
    bool is_free = flock(ledger->lock, LOCK_EX | LOCK_NB) == 0;
    if (is_free)
        (void) flock(ledger->lock, LOCK_UN);
    return !is_free && errno == EWOULDBLOCK;
}

void ledger_unlock(struct ledger *ledger)
{
    if (ledger->is_locked)
        (void) flock(ledger->lock, LOCK_UN);
    ledger->is_locked = false;
}

/* --- space ------------------------------------------------------------------------------------ */

static void fill_reserve(struct ledger *ledger)
{
    uint64_t size = ledger->settings.reserve ? ledger->settings.reserve : reserve_max;
    struct stat status;
    if (ledger->reserve < 0)
        ledger->reserve = openat(ledger->folder, "reserve", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    /* Without fallocate(2) there is no reserve, which does not count as short. */
    ledger->is_short = ledger->reserve < 0 || fstat(ledger->reserve, &status) < 0 ||
                       ((uint64_t) status.st_blocks * 512 < size &&
                        fallocate(ledger->reserve, 0, 0, (off_t) size) < 0 &&
                        (errno == ENOSPC || errno == EDQUOT));
    ledger->next_look = deadline_in(ROOM_LOOK_MS);
}

/* Inodes may be used up before bytes: the next segment needs one, and so do files that runs leave
 * there. */
static bool has_place(const struct ledger *ledger)
{
    struct statvfs system;
    return fstatvfs(ledger->folder, &system) < 0 ||
           ((system.f_files == 0 || system.f_favail > 0) && system.f_bavail > 0);
}

uint64_t ledger_free_bytes(const struct ledger *ledger)
{
    struct statvfs system;
    return fstatvfs(ledger->folder, &system) < 0 ? 0 : (uint64_t) system.f_bavail * system.f_frsize;
}

/* Writes over existing bytes, which needs no space. */
int ledger_probe(const struct ledger *ledger, error *err)
{
    if (pwrite(ledger->lock, "", 1, 0) == 1 || errno == ENOSPC || errno == EDQUOT)
        return 0;
    (void) fail_os(err, "write to the disk of the log of receipts");
    err->code = ERR_UNAVAILABLE;
    return -1;
}

bool ledger_has_room(struct ledger *ledger)
{
    if (!has_place(ledger))
        return false;
    if (ledger->is_short && deadline_has_passed(ledger->next_look))
        fill_reserve(ledger);
    return !ledger->is_short;
}

static bool use_reserve(struct ledger *ledger)
{
    if (ledger->is_short || (errno != ENOSPC && errno != EDQUOT))
        return false;
    ledger->is_short = true;
    ledger->next_look = deadline_in(ROOM_LOOK_MS);
    return ledger->reserve >= 0 && ftruncate(ledger->reserve, 0) == 0;
}

/* --- a record --------------------------------------------------------------------------------- */

/* The old segment is on disk before the new one begins: only the newest can be incomplete. So the
 * new one begins when nothing is left to be synced, and the writer need not wait for the disk. */
static int rotate(struct ledger *ledger, error *err)
{
    uint64_t full = ledger_rotates_at(ledger);
    if (ledger->end < full || (ledger_is_dirty(ledger) && ledger->end < full * 4))
        return 0;
    if (ledger_sync_records(ledger, err) < 0)
        return -1;
    if (ledger_is_dirty(ledger)) /* on the disk, but no checkpoint covers it yet */
        return 0;
    return ledger_open_segment(ledger, ledger->edge.size, O_CREAT, err);
}

int ledger_begin(struct ledger *ledger, struct merkle_head *ret_head, error *err)
{
    if (ledger_lock(ledger, err) < 0)
        return -1;
    if (ledger_catch_up(ledger, ledger->edge.size, err) < 0 ||
        ledger_settle_next_key(ledger, err) < 0 || rotate(ledger, err) < 0) {
        ledger_unlock(ledger);
        return -1;
    }
    ret_head->size = ledger->edge.size;
    merkle_edge_root(&ledger->edge, &ret_head->root);
    return 0;
}

void ledger_abandon(struct ledger *ledger)
{
    ledger_unlock(ledger);
}

static int write_record(struct ledger *ledger, const unsigned char frame[FRAME_SIZE],
                        const struct bytes *record, error *err)
{
    struct iovec parts[2] = { { (void *) (uintptr_t) frame, FRAME_SIZE },
                              { record->data, record->size } };
    ssize_t size = (ssize_t) (FRAME_SIZE + record->size);
    for (;;) {
        errno = 0;
        ssize_t wrote = pwritev(ledger->segment, parts, 2, (off_t) ledger->end);
        if (wrote == size)
            return 0;
        if (wrote >= 0 && errno == 0)
            errno = ENOSPC; /* a short write sets no errno */
        bool again = errno == EINTR || use_reserve(ledger);
        if (again)
            continue;
        error cause;
        (void) fail_os(&cause, "write to the log");
        (void) !ftruncate(ledger->segment, (off_t) ledger->end);
        *err = cause;
        return -1;
    }
}

static int sign(const struct ledger *ledger, const char *type, const struct bytes *payload,
                struct signed_record *ret, error *err)
{
    ret->record.size = 0;
    if (envelope_write(&ledger->key, type, payload, &ret->record, err) < 0)
        return -1;
    if (ret->record.size > RECORD_MAX)
        return fail(err, ERR_TOO_LARGE, "a record of %zu bytes; the log takes %d", ret->record.size,
                    RECORD_MAX);
    merkle_leaf(ret->record.data, ret->record.size, &ret->leaf);
    return 0;
}

static int append(struct ledger *ledger, const struct signed_record *given, error *err)
{
    unsigned char frame[FRAME_SIZE];
    frame_write(ledger->edge.size, given->record.size, &given->leaf, frame);
    if (write_record(ledger, frame, &given->record, err) < 0)
        return -1;
    if (ledger_grow(ledger, &given->leaf, err) < 0 &&
        (!use_reserve(ledger) || ledger_grow(ledger, &given->leaf, err) < 0)) {
        (void) !ftruncate(ledger->segment, (off_t) ledger->end);
        return -1;
    }
    ledger->last_size = FRAME_SIZE + given->record.size;
    ledger->end += ledger->last_size;
    return ledger->settings.sync_each ? ledger_sync_records(ledger, err) : 0;
}

int ledger_commit_locked(struct ledger *ledger, const char *type, const struct bytes *payload,
                         error *err)
{
    struct signed_record fresh = { 0 };
    int result = sign(ledger, type, payload, &fresh, err) < 0 ? -1 : append(ledger, &fresh, err);
    bytes_done(&fresh.record);
    return result;
}

int ledger_commit(struct ledger *ledger, const char *type, const struct bytes *payload, error *err)
{
    int result = ledger_commit_locked(ledger, type, payload, err);
    ledger_unlock(ledger);
    return result;
}

/* --- opening and closing ---------------------------------------------------------------------- */

static int open_files(struct ledger *ledger, int folder, error *err)
{
    ledger->folder = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (ledger->folder < 0)
        return fail_os(err, "open the folder of the log");
    ledger->lock = openat(ledger->folder, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    ledger->tree_file =
        openat(ledger->folder, "tree", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    ledger->group_tree = openat(ledger->folder, "tree", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (ledger->lock < 0 || ledger->tree_file < 0 || ledger->group_tree < 0)
        return fail_os(err, "open the files of the log");
    return 0;
}

static int open_locked(struct ledger *ledger, error *err)
{
    char text[CHECKPOINT_SIZE];
    if (key_open(ledger->folder, &ledger->key, err) < 0 || ledger_refresh_key(ledger, err) < 0 ||
        ledger_read_checkpoint(ledger, text, err) < 0 || ledger_load_edge(ledger, err) < 0 ||
        ledger_find_end(ledger, err) < 0 || ledger_settle_next_key(ledger, err) < 0)
        return -1;
    fill_reserve(ledger);
    return 0;
}

static void release(struct ledger *ledger)
{
    const int files[] = { ledger->folder,    ledger->lock,    ledger->tree_file,
                          ledger->reserve,   ledger->segment, ledger->group_segment,
                          ledger->group_tree };
    for_each(file, files)
        close_fd(file);
    key_forget(&ledger->key);
    free(ledger);
}

int ledger_open(int folder, const struct ledger_settings *settings, struct ledger **ret_ledger,
                error *err)
{
    struct ledger *ledger = calloc(1, sizeof *ledger);
    if (!ledger)
        return fail(err, ERR_SYSTEM, "no memory for the log");
    ledger->settings = *settings;
    ledger->settings.lock_max_ms = 0; /* opening waits for the default time */
    ledger->folder = ledger->lock = ledger->tree_file = -1;
    ledger->reserve = ledger->segment = ledger->group_segment = ledger->group_tree = -1;
    ledger->tree = (struct merkle_tree){ .read = read_hash, .context = ledger };
    int result = open_files(ledger, folder, err);
    if (result == 0)
        result = ledger_lock(ledger, err);
    if (result == 0)
        result = open_locked(ledger, err);
    ledger_unlock(ledger);
    if (result < 0) {
        release(ledger);
        return under(err, "open the log of receipts");
    }
    ledger->settings.lock_max_ms = settings->lock_max_ms;
    *ret_ledger = ledger;
    return 0;
}

void ledger_close(struct ledger *ledger)
{
    error unused;
    if (!ledger)
        return;
    (void) ledger_sync(ledger, &unused); /* if it fails, the next ledger_open() does it */
    release(ledger);
}

uint64_t ledger_size(const struct ledger *ledger)
{
    return ledger->edge.size;
}

uint64_t ledger_last_size(const struct ledger *ledger)
{
    return ledger->last_size;
}

uint64_t ledger_truncate_tail(struct ledger *ledger)
{
    uint64_t torn = ledger->torn;
    ledger->torn = 0;
    return torn;
}

const struct merkle_tree *ledger_tree(const struct ledger *ledger)
{
    return &ledger->tree;
}
