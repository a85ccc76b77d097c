/* ledger_group.c - a checkpoint over a group of records: syncs them to disk, then publishes the
 * signed checkpoint by rename(2). */
#include "ledger/ledger_internal.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* Gives the checkpoint its name, by rename(2). */
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
    if (ledger_lock(ledger, err) < 0)
        return -1;
    int result = ledger_read_checkpoint(ledger, text, err);
    if (result == 0 && ledger->covered.size < group->head.size)
        result = publish(ledger, group, err);
    ledger_unlock(ledger);
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
    if (ledger_write_again(ledger, err) < 0 || ledger_group_begin(ledger, &group, err) < 0)
        return -1;
    int result = ledger_group_sync(&group, err);
    ledger->is_suspect = result < 0;
    if (result == 0)
        result = publish(ledger, &group, err);
    ledger_group_done(&group);
    return result;
}

int ledger_sync_locked(struct ledger *ledger, error *err)
{
    return ledger->edge.size == ledger->covered.size ? 0 : ledger_sign_checkpoint(ledger, err);
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
        result = ledger_group_begin(ledger, &group, err);
    ledger_unlock(ledger);
    if (result < 0 || is_covered)
        return result;
    result = ledger_group_sync(&group, err);
    ledger->is_suspect = result < 0;
    if (result == 0)
        result = ledger_group_end(ledger, &group, err);
    ledger_group_done(&group);
    return result;
}

bool ledger_is_dirty(const struct ledger *ledger)
{
    return ledger->edge.size > ledger->covered.size;
}

int ledger_checkpoint(struct ledger *ledger, char ret_text[CHECKPOINT_SIZE],
                      struct merkle_head *ret, error *err)
{
    if (ledger_sync(ledger, err) < 0 || ledger_read_checkpoint(ledger, ret_text, err) < 0)
        return -1;
    *ret = ledger->covered;
    return 0;
}
