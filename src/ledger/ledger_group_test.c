/* ledger_group_test.c - checkpoints over groups of records, and when a segment begins. */
#include "ledger/ledger_test_folder.h"

#include "base/auto_free.h"
#include "base/read_at.h"
#include "ledger/event.h"
#include "ledger/segment.h"

#include <errno.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static ino_t broken; /* the file whose data the disk has refused */

/* As Linux: each open of a file reports the failure once, and dup(2) shares the open. The offset,
 * which the ledger does not use, marks those that have reported it. */
int fdatasync(int fildes)
{
    struct stat status;
    if (broken == 0 || fstat(fildes, &status) < 0 || status.st_ino != broken ||
        lseek(fildes, 0, SEEK_CUR) != 0)
        return fsync(fildes);
    (void) lseek(fildes, 1, SEEK_SET);
    errno = EIO;
    return -1;
}

static struct ledger_group *named_meanwhile; /* by another writer, while one waits for the folder */

int flock(int fd, int operation)
{
    struct stat status;
    struct ledger_group *group = named_meanwhile;
    error err;
    if (group && fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) {
        named_meanwhile = NULL;
        require(ledger_group_sync(group, &err) == 0 && group->is_named, "%s", err.text);
    }
    return (int) syscall(SYS_flock, fd, operation);
}

/* Gives  the first record of the newest. */
static size_t count_segments(int folder, uint64_t *ret_first)
{
    auto_free uint64_t *firsts = NULL;
    size_t count = 0;
    error err;
    require(segments_list(folder, &firsts, &count, &err) == 0 && count > 0, "no segments");
    *ret_first = firsts[count - 1];
    return count;
}

/* Returns how many records the published checkpoint covers. */
static uint64_t published(int folder, const struct ledger *ledger)
{
    char text[CHECKPOINT_SIZE] = "";
    struct merkle_head head = { 0 };
    error err;
    auto_fd file = openat(folder, "checkpoint", O_RDONLY | O_CLOEXEC);
    require(read_at(file, text, sizeof text - 1, 0) > 0, "no checkpoint");
    require(checkpoint_read(text, ledger_key(ledger), &head, &err) == 0, "%s", err.text);
    return head.size;
}

TEST(a_segment_begins_when_nothing_is_to_be_synced)
{
    int folder = make_folder();
    struct ledger *ledger = open_ledger(folder);
    struct stat status;
    uint64_t first;
    error err;
    auto_fd file = openat(folder, "00000000000000000000.log", O_RDONLY | O_CLOEXEC);
    do {
        add(ledger, "a");
        require(fstat(file, &status) == 0 && count_segments(folder, &first) == 1, "no wait");
    } while (status.st_size < 2000);
    add(ledger, "more than a segment");
    expect(count_segments(folder, &first) == 1, "begun while records were not on the disk");
    require(ledger_sync(ledger, &err) == 0, "%s", err.text);
    uint64_t size = ledger_size(ledger);
    add(ledger, "after a sync");
    expect(count_segments(folder, &first) == 2 && first == size, "not begun after a sync");
    /* At four times the size it does not wait any longer, and the end of the one before is synced.
     */
    while (count_segments(folder, &first) == 2 && ledger_size(ledger) < size + 100)
        add(ledger, "b");
    expect(count_segments(folder, &first) == 3 && first == ledger_size(ledger) - 1, "no limit");
    expect(published(folder, ledger) == first, "the checkpoint covers other records");
    ledger_close(ledger);
    ledger = open_ledger(folder);
    expect(ledger_size(ledger) == first + 1, "%llu records",
           (unsigned long long) ledger_size(ledger));
    ledger_close(ledger);
    remove_folder(folder);
}

TEST(a_checkpoint_that_was_slow_replaces_no_newer_one)
{
    int folder = make_folder();
    struct ledger *one = open_ledger(folder), *other = open_ledger(folder);
    struct ledger_group group, late;
    struct merkle_head head;
    char text[CHECKPOINT_SIZE];
    error err;
    add(one, "first");
    require(ledger_group_begin(one, &group, &err) == 0 &&
                ledger_group_begin(one, &late, &err) == 0 && ledger_group_sync(&group, &err) == 0,
            "%s", err.text);
    add(one, "while the disk was slow");
    expect(ledger_group_end(one, &group, &err) == 0 && ledger_is_dirty(one), "%s", err.text);
    add(other, "another");
    require(ledger_sync(other, &err) == 0, "%s", err.text);
    expect(ledger_group_sync(&late, &err) == 0 && late.is_on_disk && !late.is_named, "named again");
    expect(ledger_group_end(one, &late, &err) == 0 && !ledger_is_dirty(one), "%s", err.text);
    ledger_group_done(&group);
    ledger_group_done(&late);
    require(ledger_checkpoint(one, text, &head, &err) == 0, "%s", err.text);
    expect(head.size == 3, "the checkpoint covers %llu", (unsigned long long) head.size);
    ledger_close(one);
    ledger_close(other);
    remove_folder(folder);
}

/* The thread could not read the published one; the loop could, and waited for the folder. */
TEST(a_checkpoint_that_was_late_replaces_no_newer_one)
{
    int folder = make_folder();
    struct ledger *one = open_ledger(folder), *other = open_ledger(folder);
    struct ledger_group late, newer;
    error err;
    add(one, "first");
    require(ledger_sync(one, &err) == 0, "%s", err.text);
    add(one, "second");
    require(ledger_group_begin(one, &late, &err) == 0, "%s", err.text);
    require(renameat(folder, "checkpoint", folder, "before") == 0 &&
                symlinkat("before", folder, "checkpoint") == 0,
            "no link");
    expect(ledger_group_sync(&late, &err) == 0 && !late.is_named, "named");
    require(renameat(folder, "before", folder, "checkpoint") == 0, "not renamed");
    add(other, "third");
    require(ledger_group_begin(other, &newer, &err) == 0, "%s", err.text);
    named_meanwhile = &newer;
    expect(ledger_group_end(one, &late, &err) == 0 && !late.is_named, "%s", err.text);
    expect(!named_meanwhile && published(folder, one) == 3 && ledger_covered(one) == 3,
           "an older one is published");
    ledger_group_done(&late);
    ledger_group_done(&newer);
    ledger_close(one);
    ledger_close(other);
    remove_folder(folder);
}

/* The group's key is not that of the published checkpoint. */
TEST(a_checkpoint_of_the_key_before_is_not_published)
{
    int state = make_folder();
    require(mkdirat(state, "log", 0700) == 0, "no folder");
    int folder = openat(state, "log", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct ledger *one = open_ledger(folder);
    struct public_key before = *ledger_key(one);
    struct ledger_group group;
    struct merkle_head head;
    char text[CHECKPOINT_SIZE];
    error err;
    add(one, "first");
    require(ledger_group_begin(one, &group, &err) == 0, "%s", err.text);
    require(event_rotate_key(state, &err) == 0, "%s", err.text);
    expect(ledger_group_sync(&group, &err) == 0 && group.is_on_disk && !group.is_named, "named");
    expect(ledger_group_end(one, &group, &err) == 0, "%s", err.text);
    ledger_group_done(&group);
    require(ledger_checkpoint(one, text, &head, &err) == 0, "%s", err.text);
    expect(head.size == 2 && checkpoint_read(text, ledger_key(one), &head, &err) == 0 &&
               checkpoint_read(text, &before, &head, &err) < 0,
           "%s", text);
    ledger_close(one);
    remove_folder(folder);
    remove_folder(state);
}

/* A process died after it had changed the key, before its checkpoint: the one before is there. */
TEST(a_checkpoint_of_the_key_before_is_replaced_on_the_loop)
{
    const struct ledger_settings settings = { .lock_max_ms = 1 };
    int state = make_folder();
    require(mkdirat(state, "log", 0700) == 0, "no folder");
    int folder = openat(state, "log", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct ledger *ledger = NULL;
    struct ledger_group group;
    error err;
    require(ledger_open(folder, &settings, &ledger, &err) == 0, "%s", err.text);
    add(ledger, "first");
    require(ledger_sync(ledger, &err) == 0 &&
                linkat(folder, "checkpoint", folder, "before", 0) == 0 &&
                event_rotate_key(state, &err) == 0 &&
                renameat(folder, "before", folder, "checkpoint") == 0,
            "%s", err.text);
    add(ledger, "by the new key");
    require(ledger_group_begin(ledger, &group, &err) == 0, "%s", err.text);
    expect(ledger_group_sync(&group, &err) == 0 && !group.is_named, "the thread has replaced it");
    auto_fd holder = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    require(flock(holder, LOCK_EX) == 0, "lock");
    group.lock_max_ms = 5000; /* as for the thread */
    expect(ledger_group_end(ledger, &group, &err) < 0 && strstr(err.text, "checkpoint for 1 ms"),
           "%s", err.text);
    require(flock(holder, LOCK_UN) == 0, "unlock");
    expect(ledger_group_end(ledger, &group, &err) == 0 && published(folder, ledger) == 3, "%s",
           err.text);
    ledger_group_done(&group);
    ledger_close(ledger);
    remove_folder(folder);
    remove_folder(state);
}

TEST(a_checkpoint_waits_for_another_that_is_being_named)
{
    int folder = make_folder();
    struct ledger *ledger = open_ledger(folder);
    struct ledger_group group;
    error err;
    add(ledger, "first");
    auto_fd holder = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    require(flock(holder, LOCK_EX) == 0 && ledger_group_begin(ledger, &group, &err) == 0, "lock");
    group.lock_max_ms = 20;
    expect(ledger_group_sync(&group, &err) < 0 && err.code == ERR_UNAVAILABLE && group.is_on_disk,
           "%s", err.text);
    expect(strstr(err.text, "checkpoint for 20 ms; is it stopped?"), "%s", err.text);
    add(ledger, "records do not wait");
    require(flock(holder, LOCK_UN) == 0, "unlock");
    expect(ledger_group_sync(&group, &err) == 0 && group.is_named, "%s", err.text);
    expect(ledger_group_end(ledger, &group, &err) == 0, "%s", err.text);
    ledger_group_done(&group);
    ledger_close(ledger);
    remove_folder(folder);
}

/* With the lock of the folder another writer, or the thread, has only the checkpoint. */
TEST(records_do_not_wait_for_a_checkpoint_that_is_being_named)
{
    for (int each = 0; each < 2; each++) {
        const struct ledger_settings settings = {
            .sync_each = each == 1, .segment_max = 300, .reserve = 4096, .lock_max_ms = 1
        };
        int folder = make_folder();
        struct ledger *ledger = NULL;
        uint64_t first;
        error err;
        require(ledger_open(folder, &settings, &ledger, &err) == 0, "%s", err.text);
        auto_fd holder = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        require(flock(holder, LOCK_EX) == 0, "lock");
        for (int i = 0; i < 10; i++)
            add(ledger, "more than four segments");
        expect(ledger_is_dirty(ledger) && count_segments(folder, &first) == 1, "a checkpoint");
        expect(ledger_sync(ledger, &err) < 0 && err.code == ERR_UNAVAILABLE, "%s", err.text);
        require(flock(holder, LOCK_UN) == 0, "unlock");
        add(ledger, "and then");
        expect(published(folder, ledger) == 10U + (unsigned) each, "not covered");
        expect(count_segments(folder, &first) == 2 && first == 10, "begun at %llu",
               (unsigned long long) first);
        ledger_close(ledger);
        remove_folder(folder);
    }
}

/* A writer that is stopped with the log's lock keeps nobody from knowing what is covered. */
TEST(a_group_ends_without_the_log_s_lock)
{
    int folder = make_folder();
    struct ledger *one = open_ledger(folder), *other = open_ledger(folder);
    struct ledger_group group;
    struct merkle_head head;
    error err;
    add(one, "first");
    add(other, "second");
    require(ledger_group_begin(one, &group, &err) == 0 && ledger_sync(other, &err) == 0, "%s",
            err.text);
    require(ledger_group_sync(&group, &err) == 0 && !group.is_named, "%s", err.text);
    require(ledger_begin(other, &head, &err) == 0, "%s", err.text);
    expect(ledger_group_end(one, &group, &err) == 0 && ledger_covered(one) == 2, "%s", err.text);
    ledger_abandon(other);
    ledger_group_done(&group);
    ledger_close(one);
    ledger_close(other);
    remove_folder(folder);
}

/* The thread and the loop wait for the disk at the same moment; the thread's ends first. */
TEST(each_of_two_syncs_reports_what_the_disk_has_refused)
{
    for (int which = 0; which < 4; which++) {
        bool each = which % 2 == 1;
        const struct ledger_settings settings = { .sync_each = each, .reserve = 4096 };
        const struct bytes payload = { .data = (char[]){ "{}" }, .size = 2 };
        int folder = make_folder();
        struct ledger *ledger = NULL;
        struct ledger_group group;
        struct merkle_head head;
        struct stat status;
        error err;
        require(ledger_open(folder, &settings, &ledger, &err) == 0, "%s", err.text);
        add(ledger, "on the disk");
        require(ledger_sync(ledger, &err) == 0, "%s", err.text);
        require(fstatat(folder, which < 2 ? "00000000000000000000.log" : "tree", &status, 0) == 0,
                "no file");
        broken = status.st_ino;
        require(ledger_group_begin(ledger, &group, &err) == 0, "%s", err.text);
        expect(ledger_group_sync(&group, &err) < 0 && !group.is_on_disk && err.os == EIO, "%s",
               err.text);
        require(ledger_begin(ledger, &head, &err) == 0, "%s", err.text);
        int result = ledger_commit(ledger, "application/x-test", &payload, &err);
        if (!each)
            result = ledger_sync(ledger, &err);
        expect(result < 0 && err.os == EIO && published(folder, ledger) == 1,
               "%d: a checkpoint over records that are not on the disk", which);
        ledger_distrust(ledger);
        ledger_group_done(&group);
        expect(ledger_mend(ledger, &err) == 0 && ledger_sync(ledger, &err) == 0 &&
                   published(folder, ledger) == 2,
               "%d: %s", which, err.text);
        broken = 0;
        ledger_close(ledger);
        remove_folder(folder);
    }
}

/* A failure of before the mend is not reported again: the records are written anew. */
TEST(a_failure_that_is_mended_fails_no_later_sync)
{
    int folder = make_folder();
    struct ledger *ledger = open_ledger(folder);
    struct ledger_group group;
    struct stat status;
    error err;
    add(ledger, "first");
    for (int tree = 0; tree < 2; tree++) {
        require(fstatat(folder, tree ? "tree" : "00000000000000000000.log", &status, 0) == 0, "no");
        broken = status.st_ino;
        require(ledger_group_begin(ledger, &group, &err) == 0, "%s", err.text);
        expect(ledger_group_sync(&group, &err) < 0 && err.os == EIO, "%s", err.text);
        ledger_group_done(&group);
        ledger_distrust(ledger);
        expect(ledger_mend(ledger, &err) == 0 && ledger_sync(ledger, &err) == 0, "%s", err.text);
        add(ledger, "and then");
    }
    broken = 0;
    ledger_close(ledger);
    remove_folder(folder);
}

static void count_told(void *context, const char *text, size_t size)
{
    (void) text;
    *(int *) context += size > 0;
}

TEST(the_witness_gets_no_checkpoint_after_a_later_one)
{
    int folder = make_folder(), told = 0;
    const struct ledger_settings settings = { .witness = count_told, .witness_context = &told };
    struct ledger *ledger = NULL;
    struct ledger_group group;
    error err;
    require(ledger_open(folder, &settings, &ledger, &err) == 0, "%s", err.text);
    add(ledger, "first");
    require(ledger_group_begin(ledger, &group, &err) == 0 && ledger_group_sync(&group, &err) == 0,
            "%s", err.text);
    add(ledger, "second");
    require(ledger_sync(ledger, &err) == 0 && told == 1, "%s", err.text);
    expect(ledger_group_end(ledger, &group, &err) == 0 && told == 1 && ledger_covered(ledger) == 2,
           "told %d times", told);
    ledger_group_done(&group);
    ledger_close(ledger);
    remove_folder(folder);
}

TESTS(CASE(a_segment_begins_when_nothing_is_to_be_synced),
      CASE(a_checkpoint_that_was_slow_replaces_no_newer_one),
      CASE(a_checkpoint_that_was_late_replaces_no_newer_one),
      CASE(a_checkpoint_of_the_key_before_is_not_published),
      CASE(a_checkpoint_of_the_key_before_is_replaced_on_the_loop),
      CASE(a_checkpoint_waits_for_another_that_is_being_named),
      CASE(records_do_not_wait_for_a_checkpoint_that_is_being_named),
      CASE(a_group_ends_without_the_log_s_lock),
      CASE(each_of_two_syncs_reports_what_the_disk_has_refused),
      CASE(a_failure_that_is_mended_fails_no_later_sync),
      CASE(the_witness_gets_no_checkpoint_after_a_later_one))
