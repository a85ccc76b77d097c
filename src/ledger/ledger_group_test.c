/* ledger_group_test.c - checkpoints over groups of records, and when a segment begins. */
#include "ledger/ledger_test_folder.h"

#include "base/auto_free.h"
#include "base/read_at.h"
#include "ledger/event.h"
#include "ledger/segment.h"

#include <sys/file.h>
#include <sys/stat.h>

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
      CASE(a_checkpoint_of_the_key_before_is_not_published),
      CASE(a_checkpoint_of_the_key_before_is_replaced_on_the_loop),
      CASE(a_checkpoint_waits_for_another_that_is_being_named),
      CASE(records_do_not_wait_for_a_checkpoint_that_is_being_named),
      CASE(a_group_ends_without_the_log_s_lock),
      CASE(the_witness_gets_no_checkpoint_after_a_later_one))
