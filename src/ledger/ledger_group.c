/* ledger_group.c - a checkpoint over a group of records: syncs them to disk, then publishes the
 * signed checkpoint by rename(2), which waits for the disk, too. */
#include "ledger/ledger_internal.h"

#include "base/cleanup.h"
#include "base/write_whole.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* A group of the loop uses the files that it writes: see group_segment. */
static int begin(const struct ledger *ledger, bool is_here, struct ledger_group *group, error *err)
{
    *group = (struct ledger_group){ .head.size = ledger->edge.size,
                                    .key = ledger->key.public,
                                    .lock_max_ms = ledger_lock_max_ms(ledger) };
    merkle_edge_root(&ledger->edge, &group->head.root);
    checkpoint_print(&ledger->key, &group->head, group->text);
    group->segment = fcntl(is_here ? ledger->segment : ledger->group_segment, F_DUPFD_CLOEXEC, 0);
    group->tree = fcntl(is_here ? ledger->tree_file : ledger->group_tree, F_DUPFD_CLOEXEC, 0);
    group->folder = openat(ledger->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (group->segment >= 0 && group->tree >= 0 && group->folder >= 0)
        return 0;
    (void) fail_os(err, "begin a checkpoint of the log");
    ledger_group_done(group);
    return -1;
}

int ledger_group_begin(const struct ledger *ledger, struct ledger_group *group, error *err)
{
    return begin(ledger, false, group, err);
}

void ledger_group_done(struct ledger_group *group)
{
    close_fd(&group->segment);
    close_fd(&group->tree);
    close_fd(&group->folder);
}

/* Gives the checkpoint its name, by rename(2). */
static int give_name(struct ledger_group *group, error *err)
{
    char path[64];
    size_t size = strlen(group->text);
    auto_fd note = openat(group->folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);
    if (note < 0 || write_whole(note, group->text, size) < 0 || fdatasync(note) < 0)
        return fail_os(err, "write the log's checkpoint");
    (void) snprintf(path, sizeof path, "/proc/self/fd/%d", note);
    (void) unlinkat(group->folder, "checkpoint.new", 0); /* of a writer that was killed here */
    if (linkat(AT_FDCWD, path, group->folder, "checkpoint.new", AT_SYMLINK_FOLLOW) < 0 ||
        renameat(group->folder, "checkpoint.new", group->folder, "checkpoint") < 0)
        return fail_os(err, "name the log's checkpoint");
    group->is_named = true;
    return 0;
}

/* Is the published checkpoint one of this key over fewer records, or is there none? */
static bool is_next(const struct ledger_group *group)
{
    char text[CHECKPOINT_SIZE];
    struct merkle_head head;
    error unused;
    auto_fd file = openat(group->folder, "checkpoint", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return errno == ENOENT;
    ssize_t got = read(file, text, sizeof text - 1);
    if (got < 0)
        return false;
    text[got] = '\0';
    return checkpoint_read(text, &group->key, &head, &unused) == 0 && head.size < group->head.size;
}

/* The folder has a lock of its own for this, since rename(2) can wait for a commit of the file
 * system's journal, and other writers should not wait with it. */
static int lock_folder(const struct ledger_group *group, error *err)
{
    if (ledger_flock(group->folder, group->lock_max_ms))
        return 0;
    return errno != EWOULDBLOCK
               ? fail_os(err, "lock the folder of the log")
               : fail(err, ERR_UNAVAILABLE,
                      "another glovebox has held the log's checkpoint for %d ms; is it stopped?",
                      (int) group->lock_max_ms);
}

static int publish(struct ledger_group *group, bool is_checked, error *err)
{
    if (lock_folder(group, err) < 0)
        return -1;
    int result = is_checked || is_next(group) ? give_name(group, err) : 0;
    (void) flock(group->folder, LOCK_UN);
    return result;
}

int ledger_group_sync(struct ledger_group *group, error *err)
{
    if (fdatasync(group->segment) < 0 || fdatasync(group->tree) < 0)
        return fail_os(err, "bring the log to disk");
    group->is_on_disk = true;
    return publish(group, false, err);
}

static void tell_witness(struct ledger *ledger, const struct ledger_group *group)
{
    if (ledger->covered.size > group->head.size)
        return; /* a later one is published */
    ledger->covered = group->head;
    if (ledger->settings.witness)
        ledger->settings.witness(ledger->settings.witness_context, group->text,
                                 strlen(group->text));
}

/* With both locks: another writer may have published a later one while this waited. */
static int publish_late(struct ledger *ledger, struct ledger_group *group, error *err)
{
    char text[CHECKPOINT_SIZE];
    if (lock_folder(group, err) < 0)
        return -1;
    int result = ledger_read_checkpoint(ledger, text, err);
    if (result == 0 && ledger->covered.size < group->head.size)
        result = give_name(group, err);
    (void) flock(group->folder, LOCK_UN);
    return result;
}

/* The second step gives a group no name if the published checkpoint covers as much, which can be
 * seen without the lock, is of another key, or could not be read. */
int ledger_group_end(struct ledger *ledger, struct ledger_group *group, error *err)
{
    char text[CHECKPOINT_SIZE];
    int result = group->is_named ? 0 : ledger_read_checkpoint(ledger, text, err);
    if (result == 0 && !group->is_named && ledger->covered.size < group->head.size) {
        group->lock_max_ms = ledger_lock_max_ms(ledger); /* that of a thread is too long here */
        result = ledger_lock(ledger, err) < 0 ? -1 : publish_late(ledger, group, err);
        ledger_unlock(ledger);
    }
    if (group->is_named)
        tell_witness(ledger, group);
    return result;
}

/* After a failed sync: reads everything after the last checkpoint, compares its root with that in
 * memory, and writes it again. Fails  ERR_UNAVAILABLE  it has changed. */
static int ledger_write_again(struct ledger *ledger, error *err)
{
    char text[CHECKPOINT_SIZE];
    struct merkle_hash before, after;
    if (!ledger->is_suspect)
        return 0;
    /* Errors of writes until now are no news to a sync here; a thread's are left to it. */
    (void) !(fdatasync(ledger->segment) + fdatasync(ledger->tree_file));
    if (ledger_catch_up(ledger, ledger->edge.size, err) < 0)
        return -1;
    struct merkle_edge edge = ledger->edge;
    uint64_t end = ledger->end;
    merkle_edge_root(&edge, &before);
    ledger->is_compared = true;
    int result = ledger_read_checkpoint(ledger, text, err);
    if (result == 0 && ledger->covered.size < ledger->edge.size) {
        result = ledger_load_edge(ledger, err);
        ledger->end = 0;
        if (result == 0)
            result = ledger_catch_up(ledger, ledger->covered.size, err);
        merkle_edge_root(&ledger->edge, &after);
        if (result == 0 && (ledger->edge.size != edge.size || !merkle_equal(&before, &after)))
            result = fail(err, ERR_UNAVAILABLE, "they are not what was written");
    }
    ledger->is_compared = false;
    ledger->is_suspect = result < 0;
    if (result == 0)
        return 0;
    ledger->edge = edge;
    ledger->end = end;
    return under(err, "records that the disk has refused");
}

int ledger_mend(struct ledger *ledger, error *err)
{
    if (!ledger->is_suspect)
        return 0;
    if (ledger_lock(ledger, err) < 0)
        return -1;
    int result = ledger_write_again(ledger, err);
    ledger_unlock(ledger);
    return result;
}

void ledger_distrust(struct ledger *ledger)
{
    ledger->is_suspect = true;
}

int ledger_sign_checkpoint(struct ledger *ledger, error *err)
{
    struct ledger_group group;
    if (ledger_write_again(ledger, err) < 0 || begin(ledger, true, &group, err) < 0)
        return -1;
    int result = ledger_group_sync(&group, err);
    ledger->is_suspect = !group.is_on_disk;
    if (group.is_on_disk)
        ledger->on_disk = group.head.size;
    if (result == 0 && !group.is_named)
        result = publish(&group, true, err);
    if (result == 0)
        tell_witness(ledger, &group);
    ledger_group_done(&group);
    return result;
}

int ledger_sync_locked(struct ledger *ledger, error *err)
{
    return ledger->edge.size == ledger->covered.size ? 0 : ledger_sign_checkpoint(ledger, err);
}

/* Records that are on the disk do not fail because their checkpoint has no name yet, as while a
 * thread or another writer names its own: the next group covers them. */
int ledger_sync_records(struct ledger *ledger, error *err)
{
    int result = ledger_sync_locked(ledger, err);
    return ledger->on_disk == ledger->edge.size ? 0 : result;
}

/* Waits for the disk without the lock, so that other writers can go on. */
int ledger_sync(struct ledger *ledger, error *err)
{
    struct ledger_group group = { 0 };
    if (!ledger_is_dirty(ledger))
        return 0;
    if (ledger_lock(ledger, err) < 0)
        return -1;
    int result = ledger_catch_up(ledger, ledger->edge.size, err);
    if (result == 0)
        result = ledger_write_again(ledger, err);
    bool is_covered = ledger->edge.size == ledger->covered.size;
    if (result == 0 && !is_covered)
        result = begin(ledger, true, &group, err);
    ledger_unlock(ledger);
    if (result < 0 || is_covered)
        return result;
    result = ledger_group_sync(&group, err);
    ledger->is_suspect = !group.is_on_disk;
    if (result == 0)
        result = ledger_group_end(ledger, &group, err);
    ledger_group_done(&group);
    return result;
}

uint64_t ledger_covered(const struct ledger *ledger)
{
    return ledger->covered.size;
}

bool ledger_is_dirty(const struct ledger *ledger)
{
    return ledger->edge.size > ledger->covered.size;
}

int ledger_checkpoint(struct ledger *ledger, char ret_text[CHECKPOINT_SIZE],
                      struct merkle_head *ret, error *err)
{
    if (ledger_read_checkpoint(ledger, ret_text, err) < 0)
        return -1;
    *ret = ledger->covered;
    return 0;
}
