/* ledger.c - the writer. Its order is what makes it safe: first the record, then its hashes; first
 * the disk, then the checkpoint. So a checkpoint never covers what can be lost, and whatever lies
 * beyond it is read again, hashed again, and cut off where it is torn. */
#include "receipt/ledger.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/table.h"
#include "receipt/chain.h"
#include "receipt/envelope.h"
#include "receipt/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

enum { LOCK_MOST_MS = 5000, LOCK_LOOK_NS = 100000, ROOM_LOOK_MS = 1000 };

static const uint64_t segment_most = UINT64_C(8) << 20;
static const uint64_t reserve_most = UINT64_C(4) << 20;

struct ledger {
    struct ledger_settings settings;
    int folder, lock, tree_file, reserve;
    int segment;         /* the newest */
    uint64_t first, end; /* of the newest: its first record, and where its last one ends */
    struct signing_key key;
    ino_t key_inode; /* of its file, and since when: another process may have rotated it */
    struct timespec key_since;
    struct merkle_edge edge;
    struct merkle_tree tree;
    struct merkle_head covered; /* by the last checkpoint that we know */
    uint64_t torn;
    bool is_locked;
    bool is_short; /* the reserve is used */
    deadline next_look;
};

static int read_hash(void *context, uint64_t position, struct merkle_hash *ret, error *err)
{
    const struct ledger *ledger = context;
    ssize_t got = pread(ledger->tree_file, ret->bytes, sizeof ret->bytes,
                        (off_t) (position * sizeof ret->bytes));
    if (got < 0)
        return fail_os(err, "read the log's tree");
    if (got != sizeof ret->bytes)
        return fail(err, ERR_UNAVAILABLE, "the log's tree ends before hash %" PRIu64, position);
    return 0;
}

/* --- one writer at a time -----------------------------------------------------------------------
 */

static int refresh_key(struct ledger *ledger, error *err)
{
    struct stat status;
    if (fstatat(ledger->folder, "key", &status, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : fail_os(err, "look at the signing key");
    if (status.st_ino == ledger->key_inode && status.st_ctim.tv_sec == ledger->key_since.tv_sec &&
        status.st_ctim.tv_nsec == ledger->key_since.tv_nsec)
        return 0;
    if (key_open(ledger->folder, &ledger->key, err) < 0)
        return -1;
    ledger->key_inode = status.st_ino;
    ledger->key_since = status.st_ctim;
    return 0;
}

/* A writer holds it for less than a millisecond; one that was stopped must not stop us. */
static int lock(struct ledger *ledger, error *err)
{
    deadline end = { 0 };
    while (flock(ledger->lock, LOCK_EX | LOCK_NB) < 0) {
        if (errno == EINTR)
            continue;
        if (errno != EWOULDBLOCK)
            return fail_os(err, "lock the log");
        if (end.at_ms == 0)
            end = deadline_in(LOCK_MOST_MS);
        if (deadline_has_passed(end))
            return fail(err, ERR_BUSY,
                        "another glovebox has held the log for %d ms; is it stopped?",
                        LOCK_MOST_MS);
        (void) nanosleep(&(struct timespec){ .tv_nsec = LOCK_LOOK_NS }, NULL);
    }
    ledger->is_locked = true;
    if (ledger->key_inode == 0 || refresh_key(ledger, err) == 0)
        return 0;
    (void) flock(ledger->lock, LOCK_UN);
    ledger->is_locked = false;
    return -1;
}

static void unlock(struct ledger *ledger)
{
    if (ledger->is_locked)
        (void) flock(ledger->lock, LOCK_UN);
    ledger->is_locked = false;
}

/* --- what is there ------------------------------------------------------------------------------
 */

static int open_segment(struct ledger *ledger, uint64_t first, int flags, error *err)
{
    char name[SEGMENT_NAME_SIZE];
    segment_name(first, name);
    auto_fd file = openat(ledger->folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
    if (file < 0)
        return fail_os(err, "open segment %s of the log", name);
    close_fd(&ledger->segment);
    ledger->segment = take_fd(&file);
    ledger->first = first;
    ledger->end = 0;
    return 0;
}

/* Stores the hashes that a leaf has completed. */
static int grow(struct ledger *ledger, const struct merkle_hash *leaf, error *err)
{
    struct merkle_hash hashes[MERKLE_GROWTH_MOST];
    struct merkle_edge edge = ledger->edge;
    size_t count = merkle_edge_add(&edge, leaf, hashes);
    off_t place = (off_t) (merkle_stored(ledger->edge.size) * sizeof *hashes);
    ssize_t size = (ssize_t) (count * sizeof *hashes);
    if (pwrite(ledger->tree_file, hashes, (size_t) size, place) != size)
        return fail_os(err, "write the log's tree");
    ledger->edge = edge;
    return 0;
}

/* Walks over the newest segment from where we are. Records below `known` are in the tree and only
 * stepped over; those from there on are hashed and added to it. */
static int walk(struct ledger *ledger, uint64_t index, uint64_t known, error *err)
{
    struct segment segment;
    struct record record;
    struct merkle_hash leaf;
    int result = 0;
    if (segment_map(ledger->segment, &segment, err) < 0)
        return -1;
    for (; result == 0; index++) {
        int found = segment_next(&segment, ledger->end, index, &record);
        bool is_new = index >= known;
        if (found == SEGMENT_RECORD && is_new && !record_is_whole(&record, &leaf))
            found = SEGMENT_TORN;
        if (found != SEGMENT_RECORD)
            break;
        if (is_new)
            result = grow(ledger, &leaf, err);
        ledger->end = record.offset + FRAME_SIZE + record.size;
    }
    uint64_t torn = segment.size - ledger->end;
    segment_unmap(&segment);
    if (result < 0)
        return result;
    if (index < known)
        return fail(err, ERR_UNAVAILABLE,
                    "record %" PRIu64 " of the log is %s although a checkpoint covers it; run: "
                    "glovebox log verify",
                    index, torn > 0 ? "damaged" : "missing");
    if (torn == 0)
        return 0;
    if (ftruncate(ledger->segment, (off_t) ledger->end) < 0)
        return fail_os(err, "cut off %" PRIu64 " torn bytes of the log", torn);
    ledger->torn += torn;
    return 0;
}

static uint64_t rotate_at(const struct ledger *ledger)
{
    return ledger->settings.segment_most ? ledger->settings.segment_most : segment_most;
}

/* Takes in what other writers have added. `known`: so many records are in our tree already. */
static int catch_up(struct ledger *ledger, uint64_t known, error *err)
{
    for (;;) {
        struct stat status;
        if (fstat(ledger->segment, &status) < 0)
            return fail_os(err, "look at the log");
        uint64_t index = ledger->edge.size;
        if (ledger->end == 0)
            index = ledger->first;
        if ((uint64_t) status.st_size < ledger->end)
            return fail(err, ERR_UNAVAILABLE,
                        "somebody has shortened the log behind record %" PRIu64
                        "; run: glovebox log "
                        "verify",
                        ledger->first);
        if ((uint64_t) status.st_size > ledger->end && walk(ledger, index, known, err) < 0)
            return -1;
        if (ledger->end < rotate_at(ledger))
            return 0;
        error none;
        if (open_segment(ledger, ledger->edge.size, 0, &none) < 0) {
            *err = none;
            return none.os == ENOENT ? 0 : -1; /* nobody has begun it yet */
        }
        known = ledger->edge.size;
    }
}

static int read_checkpoint(struct ledger *ledger, char text[CHECKPOINT_SIZE], error *err)
{
    auto_fd file = openat(ledger->folder, "checkpoint", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0 && errno == ENOENT) {
        ledger->covered = (struct merkle_head){ 0 };
        text[0] = '\0';
        return 0;
    }
    ssize_t got = file < 0 ? -1 : read(file, text, CHECKPOINT_SIZE - 1);
    if (got < 0)
        return fail_os(err, "read the log's checkpoint");
    text[got] = '\0';
    if (refresh_key(ledger, err) < 0)
        return -1;
    if (checkpoint_read(text, &ledger->key.public, &ledger->covered, err) == 0)
        return 0;
    /* By the key before, if whoever rotated it came no further. */
    struct key_chain *chain = malloc(sizeof *chain);
    error unused;
    bool is_good =
        chain && key_chain_read(ledger->folder, chain, &unused) == 0 &&
        key_chain_number(chain, ledger->key.public.id) >= 0 &&
        key_chain_checkpoint(chain, &ledger->key.public, text, &ledger->covered, &unused) == 0;
    free(chain);
    return is_good ? 0 : -1;
}

/* The edge of the tree where the checkpoint stands, which must have the root that was signed. */
static int load_edge(struct ledger *ledger, error *err)
{
    struct merkle_hash root;
    if (merkle_edge_load(&ledger->tree, ledger->covered.size, &ledger->edge, err) < 0)
        return -1;
    merkle_edge_root(&ledger->edge, &root);
    if (ledger->covered.size > 0 && !merkle_equal(&root, &ledger->covered.root))
        return fail(err, ERR_UNAVAILABLE,
                    "the log's tree does not fit its checkpoint; run: glovebox log verify");
    return 0;
}

/* From the segment in which the checkpoint's last record lies to the newest. */
static int find_end(struct ledger *ledger, error *err)
{
    uint64_t *firsts = NULL;
    size_t count = 0;
    if (segments_list(ledger->folder, &firsts, &count, err) < 0)
        return -1;
    uint64_t first = 0;
    for (size_t i = 0; i < count && firsts[i] <= ledger->covered.size; i++)
        first = firsts[i];
    bool is_there = count > 0 && firsts[0] <= ledger->covered.size;
    free(firsts);
    bool has_lost =
        is_there ? count > 1 && ledger->covered.size == 0 : count > 0 || ledger->covered.size > 0;
    if (has_lost) /* a segment is never begun before a checkpoint covers the one before it */
        return fail(err, ERR_UNAVAILABLE,
                    "the log's segments and its checkpoint (%" PRIu64
                    " records) do not fit; run: glovebox log verify",
                    ledger->covered.size);
    if (open_segment(ledger, first, is_there ? 0 : O_CREAT | O_EXCL, err) < 0 ||
        catch_up(ledger, ledger->covered.size, err) < 0)
        return -1;
    struct stat status;
    off_t stored = (off_t) (merkle_stored(ledger->edge.size) * MERKLE_HASH_SIZE);
    if (ledger->edge.size > ledger->first && ledger->end == 0)
        return fail(err, ERR_UNAVAILABLE, "record %" PRIu64 " of the log is missing",
                    ledger->first);
    if (fstat(ledger->tree_file, &status) == 0 && status.st_size > stored &&
        ftruncate(ledger->tree_file, stored) < 0)
        return fail_os(err, "shorten the log's tree");
    return 0;
}

/* --- space --------------------------------------------------------------------------------------
 */

static void fill_reserve(struct ledger *ledger)
{
    uint64_t size = ledger->settings.reserve ? ledger->settings.reserve : reserve_most;
    struct stat status;
    if (ledger->reserve < 0)
        ledger->reserve = openat(ledger->folder, "reserve", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    /* A file system without fallocate() keeps no reserve, and is not short of it. */
    ledger->is_short = ledger->reserve < 0 || fstat(ledger->reserve, &status) < 0 ||
                       ((uint64_t) status.st_blocks * 512 < size &&
                        fallocate(ledger->reserve, 0, 0, (off_t) size) < 0 &&
                        (errno == ENOSPC || errno == EDQUOT));
    ledger->next_look = deadline_in(ROOM_LOOK_MS);
}

bool ledger_has_room(struct ledger *ledger)
{
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

/* --- a record -----------------------------------------------------------------------------------
 */

int ledger_group_begin(const struct ledger *ledger, struct ledger_group *group, error *err)
{
    *group = (struct ledger_group){ .head.size = ledger->edge.size };
    merkle_edge_root(&ledger->edge, &group->head.root);
    checkpoint_print(&ledger->key, &group->head, group->text);
    group->segment = fcntl(ledger->segment, F_DUPFD_CLOEXEC, 0);
    group->tree = fcntl(ledger->tree_file, F_DUPFD_CLOEXEC, 0);
    group->note = openat(ledger->folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);
    if (group->segment >= 0 && group->tree >= 0 && group->note >= 0)
        return 0;
    (void) fail_os(err, "begin a checkpoint of the log");
    ledger_group_done(group);
    return -1;
}

int ledger_group_sync(const struct ledger_group *group, error *err)
{
    size_t size = strlen(group->text);
    if (fdatasync(group->segment) < 0 || fdatasync(group->tree) < 0)
        return fail_os(err, "bring the log to disk");
    if (write(group->note, group->text, size) != (ssize_t) size || fdatasync(group->note) < 0)
        return fail_os(err, "write the log's checkpoint");
    return 0;
}

void ledger_group_done(struct ledger_group *group)
{
    close_fd(&group->segment);
    close_fd(&group->tree);
    close_fd(&group->note);
}

/* Gives the checkpoint its name, in one step. */
static int publish(struct ledger *ledger, const struct ledger_group *group, error *err)
{
    char path[64];
    (void) snprintf(path, sizeof path, "/proc/self/fd/%d", group->note);
    (void) unlinkat(ledger->folder, "checkpoint.new", 0); /* of a writer that was killed here */
    if (linkat(AT_FDCWD, path, ledger->folder, "checkpoint.new", AT_SYMLINK_FOLLOW) < 0 ||
        renameat(ledger->folder, "checkpoint.new", ledger->folder, "checkpoint") < 0)
        return fail_os(err, "name the log's checkpoint");
    ledger->covered = group->head;
    if (ledger->settings.witness)
        ledger->settings.witness(ledger->settings.witness_context, group->text,
                                 strlen(group->text));
    return 0;
}

/* Another writer's checkpoint may have come meanwhile, and cover more. */
int ledger_group_end(struct ledger *ledger, const struct ledger_group *group, error *err)
{
    char text[CHECKPOINT_SIZE];
    if (lock(ledger, err) < 0)
        return -1;
    int result = read_checkpoint(ledger, text, err);
    if (result == 0 && ledger->covered.size < group->head.size)
        result = publish(ledger, group, err);
    unlock(ledger);
    return result;
}

static int sign_checkpoint(struct ledger *ledger, error *err)
{
    struct ledger_group group;
    if (ledger_group_begin(ledger, &group, err) < 0)
        return -1;
    int result = ledger_group_sync(&group, err) < 0 ? -1 : publish(ledger, &group, err);
    ledger_group_done(&group);
    return result;
}

static int sync_locked(struct ledger *ledger, error *err)
{
    return ledger->edge.size == ledger->covered.size ? 0 : sign_checkpoint(ledger, err);
}

/* Everything in the old segment is on disk before the new one begins: only the newest is torn ever.
 */
static int rotate(struct ledger *ledger, error *err)
{
    return sync_locked(ledger, err) < 0 ? -1
                                        : open_segment(ledger, ledger->edge.size, O_CREAT, err);
}

/* --- another key --------------------------------------------------------------------------------
 */

/* The log has told of the next key: it comes into force, and signs what is there. */
static int take_next_key(struct ledger *ledger, const struct bytes *record,
                         const struct signing_key *next, error *err)
{
    struct key_chain *chain = malloc(sizeof *chain);
    if (!chain)
        return fail(err, ERR_SYSTEM, "no memory for the log's keys");
    int result = key_chain_read(ledger->folder, chain, err);
    bool is_told = result == 0 && chain->count > 0 &&
                   strcmp(chain->links[chain->count - 1].to.id, next->public.id) == 0;
    free(chain);
    if (result < 0 || (!is_told && key_chain_add(ledger->folder, record, err) < 0) ||
        key_take_next(ledger->folder, &next->public, err) < 0 || refresh_key(ledger, err) < 0)
        return -1;
    return sign_checkpoint(ledger, err);
}

/* Somebody died while he changed the key. What the log tells of it counts: its last record, since
 * nobody writes before this was looked at. */
static int settle_next_key(struct ledger *ledger, error *err)
{
    if (faccessat(ledger->folder, "key.next", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    struct signing_key next;
    struct chain_link link;
    auto_bytes record = { 0 };
    int found = key_find_next(ledger->folder, &next, err);
    if (found <= 0)
        return found;
    /* What cannot be read at this moment is no reason to drop a key that the log may tell of. */
    int result = ledger->edge.size > 0
                     ? segments_read(ledger->folder, ledger->edge.size - 1, &record, err)
                     : 0;
    if (result < 0 && err->code == ERR_NOT_FOUND)
        result = 0;
    bool is_told = result == 0 && record.size > 0 &&
                   key_chain_take(record.data, record.size, &link) &&
                   strcmp(link.to.id, next.public.id) == 0;
    if (is_told)
        result = take_next_key(ledger, &record, &next, err);
    else if (result == 0)
        key_drop_next(ledger->folder);
    key_forget(&next);
    return result;
}

int ledger_begin(struct ledger *ledger, struct merkle_head *ret_head, error *err)
{
    if (lock(ledger, err) < 0)
        return -1;
    if (catch_up(ledger, ledger->edge.size, err) < 0 || settle_next_key(ledger, err) < 0 ||
        (ledger->end >= rotate_at(ledger) && rotate(ledger, err) < 0)) {
        unlock(ledger);
        return -1;
    }
    ret_head->size = ledger->edge.size;
    merkle_edge_root(&ledger->edge, &ret_head->root);
    return 0;
}

void ledger_abandon(struct ledger *ledger)
{
    unlock(ledger);
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
            errno = ENOSPC; /* a short write says no more */
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

static int commit(struct ledger *ledger, const char *type, const struct bytes *payload, error *err)
{
    auto_bytes record = { 0 };
    struct merkle_hash leaf;
    unsigned char frame[FRAME_SIZE];
    if (envelope_write(&ledger->key, type, payload, &record, err) < 0)
        return -1;
    if (record.size > RECORD_MOST)
        return fail(err, ERR_TOO_LARGE, "a record of %zu bytes; the log takes %d", record.size,
                    RECORD_MOST);
    merkle_leaf(record.data, record.size, &leaf);
    frame_write(ledger->edge.size, record.size, &leaf, frame);
    if (write_record(ledger, frame, &record, err) < 0)
        return -1;
    if (grow(ledger, &leaf, err) < 0 && (!use_reserve(ledger) || grow(ledger, &leaf, err) < 0)) {
        (void) !ftruncate(ledger->segment, (off_t) ledger->end);
        return -1;
    }
    ledger->end += FRAME_SIZE + record.size;
    return ledger->settings.sync_each ? sync_locked(ledger, err) : 0;
}

int ledger_commit(struct ledger *ledger, const char *type, const struct bytes *payload, error *err)
{
    int result = commit(ledger, type, payload, err);
    unlock(ledger);
    return result;
}

/* The disk is waited for with the lock let go of: other writers answer callers meanwhile. */
int ledger_sync(struct ledger *ledger, error *err)
{
    struct ledger_group group = { 0 };
    if (!ledger_is_dirty(ledger))
        return 0;
    if (lock(ledger, err) < 0)
        return -1;
    int result = catch_up(ledger, ledger->edge.size, err);
    bool is_covered = ledger->edge.size == ledger->covered.size;
    if (result == 0 && !is_covered)
        result = ledger_group_begin(ledger, &group, err);
    unlock(ledger);
    if (result < 0 || is_covered)
        return result;
    result = ledger_group_sync(&group, err) < 0 ? -1 : ledger_group_end(ledger, &group, err);
    ledger_group_done(&group);
    return result;
}

/* Once the log tells of it there is no way back. */
static int check_room_for_key(struct ledger *ledger, error *err)
{
    struct key_chain *chain = malloc(sizeof *chain);
    if (!chain)
        return fail(err, ERR_SYSTEM, "no memory for the log's keys");
    int result = key_chain_read(ledger->folder, chain, err);
    if (result == 0 && chain->count == CHAIN_MOST)
        result = fail(err, ERR_LIMIT, "the log has had %d keys; begin a new one", CHAIN_MOST);
    free(chain);
    if (result == 0 && !ledger_has_room(ledger))
        result = fail(err, ERR_UNAVAILABLE, "the disk of the log is full: make room there first");
    return result;
}

int ledger_rotate_key(struct ledger *ledger, ledger_tell_rotation *tell, error *err)
{
    struct signing_key next;
    struct merkle_head head;
    auto_bytes payload = { 0 };
    auto_bytes record = { 0 };
    if (ledger_begin(ledger, &head, err) < 0)
        return -1;
    int result = check_room_for_key(ledger, err);
    if (result == 0)
        result = key_make_next(ledger->folder, &next, err);
    if (result == 0)
        result = tell(&head, &ledger->key.public, &next.public, &payload, err);
    if (result == 0)
        result = commit(ledger, TYPE_EVENT, &payload, err);
    if (result == 0)
        result = sync_locked(ledger, err); /* it is on disk, as the old key has signed it */
    if (result == 0)
        result = segments_read(ledger->folder, head.size, &record, err);
    if (result == 0)
        result = take_next_key(ledger, &record, &next, err);
    key_forget(&next);
    unlock(ledger);
    return result;
}

bool ledger_is_dirty(const struct ledger *ledger)
{
    return ledger->edge.size > ledger->covered.size;
}

/* --- opening and closing ------------------------------------------------------------------------
 */

static int open_files(struct ledger *ledger, int folder, error *err)
{
    ledger->folder = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (ledger->folder < 0)
        return fail_os(err, "open the folder of the log");
    ledger->lock = openat(ledger->folder, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    ledger->tree_file =
        openat(ledger->folder, "tree", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (ledger->lock < 0 || ledger->tree_file < 0)
        return fail_os(err, "open the files of the log");
    return 0;
}

static int open_locked(struct ledger *ledger, error *err)
{
    char text[CHECKPOINT_SIZE];
    if (key_open(ledger->folder, &ledger->key, err) < 0 || refresh_key(ledger, err) < 0 ||
        read_checkpoint(ledger, text, err) < 0 || load_edge(ledger, err) < 0 ||
        find_end(ledger, err) < 0 || settle_next_key(ledger, err) < 0)
        return -1;
    fill_reserve(ledger);
    return 0;
}

static void release(struct ledger *ledger)
{
    const int files[] = { ledger->folder, ledger->lock, ledger->tree_file, ledger->reserve,
                          ledger->segment };
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
    ledger->folder = ledger->lock = ledger->tree_file = -1;
    ledger->reserve = ledger->segment = -1;
    ledger->tree = (struct merkle_tree){ .read = read_hash, .context = ledger };
    int result = open_files(ledger, folder, err);
    if (result == 0)
        result = lock(ledger, err);
    if (result == 0)
        result = open_locked(ledger, err);
    unlock(ledger);
    if (result < 0) {
        release(ledger);
        return under(err, "open the log of receipts");
    }
    *ret_ledger = ledger;
    return 0;
}

void ledger_close(struct ledger *ledger)
{
    error unused;
    if (!ledger)
        return;
    (void) ledger_sync(ledger, &unused); /* if it fails, the next to open it does it */
    release(ledger);
}

/* --- reading ------------------------------------------------------------------------------------
 */

const struct public_key *ledger_key(const struct ledger *ledger)
{
    return &ledger->key.public;
}

uint64_t ledger_size(const struct ledger *ledger)
{
    return ledger->edge.size;
}

uint64_t ledger_take_torn(struct ledger *ledger)
{
    uint64_t torn = ledger->torn;
    ledger->torn = 0;
    return torn;
}

const struct merkle_tree *ledger_tree(const struct ledger *ledger)
{
    return &ledger->tree;
}

int ledger_checkpoint(struct ledger *ledger, char ret_text[CHECKPOINT_SIZE],
                      struct merkle_head *ret, error *err)
{
    if (ledger_sync(ledger, err) < 0 || read_checkpoint(ledger, ret_text, err) < 0)
        return -1;
    *ret = ledger->covered;
    return 0;
}

int ledger_first(struct ledger *ledger, uint64_t *ret_first, error *err)
{
    uint64_t *firsts = NULL;
    size_t count = 0;
    if (segments_list(ledger->folder, &firsts, &count, err) < 0)
        return -1;
    *ret_first = count > 0 ? firsts[0] : 0;
    free(firsts);
    return 0;
}

int ledger_read(struct ledger *ledger, uint64_t index, struct bytes *out, error *err)
{
    return segments_read(ledger->folder, index, out, err);
}

/* NOLINTNEXTLINE(readability-function-size): as segments_each(), whose folder is ours */
int ledger_each(struct ledger *ledger, uint64_t from,
                int (*each)(void *context, const struct record *record, error *err), void *context,
                error *err)
{
    return segments_each(ledger->folder, from, each, context, err);
}

/* --- retention ----------------------------------------------------------------------------------
 */

bool ledger_retention(struct ledger *ledger, uint64_t *ret_first)
{
    error unused;
    uint64_t *firsts = NULL, kept = 0;
    size_t count = 0;
    if (ledger->settings.keep_most == 0 ||
        segments_list(ledger->folder, &firsts, &count, &unused) < 0)
        return false;
    size_t from = count;
    while (from > 0) { /* the newest stays whatever its size */
        char name[SEGMENT_NAME_SIZE];
        struct stat status;
        segment_name(firsts[from - 1], name);
        if (fstatat(ledger->folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
            break;
        kept += (uint64_t) status.st_size;
        if (from < count && kept > ledger->settings.keep_most)
            break;
        from--;
    }
    bool is_due = from > 0 && from < count && firsts[from] <= ledger->covered.size;
    if (is_due)
        *ret_first = firsts[from];
    free(firsts);
    return is_due;
}

void ledger_drop_before(struct ledger *ledger, uint64_t first)
{
    error unused;
    uint64_t *firsts = NULL;
    size_t count = 0;
    if (segments_list(ledger->folder, &firsts, &count, &unused) < 0)
        return;
    for (size_t i = 0; i < count && firsts[i] < first; i++) {
        char name[SEGMENT_NAME_SIZE];
        segment_name(firsts[i], name);
        (void) unlinkat(ledger->folder, name, 0);
    }
    free(firsts);
}
