/* ledger_test.c - the log is opened, written by several writers, cut off, and read again. */
#include "ledger/ledger_test_folder.h"

#include "base/auto_free.h"
#include "base/cleanup.h"
#include "base/table.h"
#include "base/test.h"
#include "ledger/chain.h"
#include "ledger/envelope.h"
#include "ledger/segment.h"
#include "ledger/statement.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* Reads every record, and checks its signature, its index and the root that it names. */
static void expect_whole(struct ledger *ledger, uint64_t size)
{
    expect(ledger_size(ledger) == size, "%llu records, not %llu",
           (unsigned long long) ledger_size(ledger), (unsigned long long) size);
    for (uint64_t index = 0; index < ledger_size(ledger); index++) {
        auto_bytes record = { 0 };
        struct envelope envelope;
        struct merkle_hash root;
        char words[160], hex[65];
        error err;
        require(ledger_read(ledger, index, &record, &err) == 0 &&
                    envelope_read(record.data, record.size, &envelope, &err) == 0 &&
                    envelope_check(&envelope, ledger_key(ledger), &err) == 0 &&
                    merkle_root(ledger_tree(ledger), index, &root, &err) == 0,
                "record %llu: %s", (unsigned long long) index, err.text);
        for (size_t i = 0; i < sizeof root.bytes; i++)
            (void) snprintf(hex + 2 * i, 3, "%02x", root.bytes[i]);
        (void) snprintf(words, sizeof words,
                        "\"index\":%llu,\"origin\":\"%s\",\"root_before\":\"%s\"",
                        (unsigned long long) index, ledger_key(ledger)->name, hex);
        expect(strstr(bytes_text(&envelope.payload), words), "record %llu does not say %s",
               (unsigned long long) index, words);
        envelope_done(&envelope);
    }
}

TEST(records_are_found_again_across_segments)
{
    int folder = make_folder();
    struct ledger *ledger = open_ledger(folder);
    error err;
    for (int i = 0; i < 20; i++) {
        add(ledger, "first");
        require(ledger_sync(ledger, &err) == 0, "%s", err.text);
    }
    expect_whole(ledger, 20);
    ledger_close(ledger);
    ledger = open_ledger(folder);
    add(ledger, "second");
    expect_whole(ledger, 21);
    auto_free uint64_t *firsts = NULL;
    size_t count = 0;
    expect(segments_list(folder, &firsts, &count, &err) == 0 && count > 3, "%zu segments", count);
    ledger_close(ledger);
    remove_folder(folder);
}

TEST(what_a_sync_has_refused_is_read_and_written_again)
{
    int folder = make_folder();
    struct ledger *ledger = open_ledger(folder);
    struct merkle_head head;
    char text[CHECKPOINT_SIZE];
    error err;
    for (int i = 0; i < 12; i++)
        add(ledger, "before");
    ledger_distrust(ledger);
    add(ledger, "behind");
    expect(ledger_mend(ledger, &err) == 0 && ledger_sync(ledger, &err) == 0, "%s", err.text);
    expect(ledger_checkpoint(ledger, text, &head, &err) == 0 && head.size == 13, "%s", err.text);
    expect_whole(ledger, 13);
    ledger_close(ledger);
    remove_folder(folder);
}

/* Does what the kernel does when it drops a page that it could not write, and reads it again
 * later. */
TEST(what_a_sync_has_refused_and_is_gone_is_never_signed)
{
    int folder = make_folder();
    struct ledger *ledger = open_ledger(folder);
    char name[SEGMENT_NAME_SIZE];
    error err;
    add(ledger, "covered");
    expect(ledger_sync(ledger, &err) == 0, "%s", err.text);
    add(ledger, "dropped");
    segment_name(0, name);
    int segment = openat(folder, name, O_RDWR | O_CLOEXEC);
    struct stat status;
    expect(segment >= 0 && fstat(segment, &status) == 0 &&
               pwrite(segment, "\0\0\0\0", 4, status.st_size - 4) == 4,
           "the end of the last record");
    (void) close(segment);
    ledger_distrust(ledger);
    for (int again = 0; again < 2; again++)
        expect(ledger_mend(ledger, &err) < 0 && err.code == ERR_UNAVAILABLE &&
                   ledger_sync(ledger, &err) < 0,
               "it is not believed");
    ledger_close(ledger);
    ledger = open_ledger(folder);
    expect(ledger_truncate_tail(ledger) > 0, "the next open reports a torn tail");
    expect_whole(ledger, 1);
    ledger_close(ledger);
    remove_folder(folder);
}

TEST(several_writers_make_one_log)
{
    int folder = make_folder();
    struct ledger *one = open_ledger(folder), *other = open_ledger(folder);
    for (int i = 0; i < 15; i++) {
        add(one, "one");
        add(other, "other");
        if (i == 7)
            add(other, "again");
    }
    expect_whole(other, 31);
    ledger_close(one); /* with a checkpoint over records that it has not seen */
    add(other, "last");
    expect_whole(other, 32);
    ledger_close(other);
    ledger_close(open_ledger(folder));
    remove_folder(folder);
}

TEST(what_is_torn_is_cut_off_and_nothing_else)
{
    int folder = make_folder();
    struct ledger *ledger = open_ledger(folder);
    add(ledger, "whole");
    ledger_close(ledger);
    auto_fd file = openat(folder, "00000000000000000000.log", O_RDWR | O_CLOEXEC);
    struct stat status;
    require(fstat(file, &status) == 0, "no segment");
    off_t whole = status.st_size;
    for (off_t torn = 1; torn < whole; torn += 7) {
        auto_bytes bytes = { 0 };
        char *place = bytes_reserve(&bytes, (size_t) whole);
        require(pread(file, place, (size_t) whole, 0) == whole, "cannot read");
        place[8] = 1; /* its frame claims to be the next record */
        require(pwrite(file, place, (size_t) torn, whole) == torn, "cannot write");
        ledger = open_ledger(folder);
        expect(ledger_truncate_tail(ledger) == (uint64_t) torn, "%lld torn bytes",
               (long long) torn);
        expect_whole(ledger, 1);
        ledger_close(ledger);
        require(fstat(file, &status) == 0 && status.st_size == whole, "%lld bytes are left",
                (long long) status.st_size);
    }
    remove_folder(folder);
}

TEST(what_a_checkpoint_covers_is_not_cut_off_in_silence)
{
    static const struct ledger_settings settings = { .segment_max = 1 << 20 };
    int folder = make_folder();
    struct ledger *ledger = open_ledger(folder);
    error err;
    add(ledger, "a");
    add(ledger, "b");
    ledger_close(ledger);
    auto_fd file = openat(folder, "00000000000000000000.log", O_RDWR | O_CLOEXEC);
    struct stat status;
    require(fstat(file, &status) == 0, "no segment");
    static const int cuts[] = { 1, 100 };
    for_each(cut, cuts) {
        require(ftruncate(file, status.st_size - *cut) == 0, "cannot cut");
        expect(ledger_open(folder, &settings, &ledger, &err) < 0 && strstr(err.text, "record 1"),
               "opened with %d bytes missing: %s", *cut, err.text);
    }
    require(ftruncate(file, 0) == 0, "cannot cut");
    expect(ledger_open(folder, &settings, &ledger, &err) < 0, "opened without its records");
    require(unlinkat(folder, "00000000000000000000.log", 0) == 0, "cannot remove");
    expect(ledger_open(folder, &settings, &ledger, &err) < 0, "opened without its segment");
    remove_folder(folder);
}

TEST(a_key_that_others_may_read_is_refused)
{
    static const struct ledger_settings settings = { 0 };
    int folder = make_folder();
    struct ledger *ledger = open_ledger(folder);
    struct stat status;
    error err;
    ledger_close(ledger);
    expect(fstatat(folder, "key", &status, 0) == 0 && (status.st_mode & 0777) == 0600, "mode %o",
           status.st_mode & 0777U);
    require(fchmodat(folder, "key", 0640, 0) == 0, "cannot change its mode");
    expect(ledger_open(folder, &settings, &ledger, &err) < 0 && strstr(err.text, "600"), "opened");
    remove_folder(folder);
}

/* Fails as with a folder of that name: the log may name that key, so it must not be dropped. */
TEST(a_next_key_that_cannot_be_read_stays)
{
    static const struct ledger_settings settings = { 0 };
    int folder = make_folder();
    struct ledger *ledger = open_ledger(folder), *other = NULL;
    struct merkle_head head;
    error err;
    add(ledger, "one");
    require(mkdirat(folder, "key.next", 0700) == 0, "no folder");
    expect(ledger_begin(ledger, &head, &err) < 0, "it begins a record");
    expect(faccessat(folder, "key.next", F_OK, 0) == 0, "key.next is gone");
    expect(ledger_open(folder, &settings, &other, &err) < 0, "it is opened");
    expect(faccessat(folder, "key.next", F_OK, 0) == 0, "key.next is gone");
    require(unlinkat(folder, "key.next", AT_REMOVEDIR) == 0, "it cannot be removed");
    int file = openat(folder, "key.next", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    require(file >= 0 && write(file, "torn", 4) == 4, "no file");
    (void) close(file);
    expect(ledger_begin(ledger, &head, &err) < 0, "it begins a record");
    expect(faccessat(folder, "key.next", F_OK, 0) == 0, "key.next is gone");
    require(unlinkat(folder, "key.next", 0) == 0, "it cannot be removed");
    add(ledger, "two"); /* the lock was released as well */
    expect_whole(ledger, 2);
    ledger_close(ledger);
    remove_folder(folder);
}

static off_t size_of(int folder, const char *name)
{
    struct stat status;
    return fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0 ? -1 : status.st_size;
}

static void expect_not_added(int folder, const struct bytes *record, int32_t code, int os)
{
    off_t before = size_of(folder, "key.chain");
    error err = { 0 };
    errno = EDOM; /* of an earlier record */
    expect(key_chain_add(folder, record, &err) < 0 && err.code == code && err.os == os,
           "code %d, errno %d: %s", err.code, err.os, err.text);
    expect(size_of(folder, "key.chain") == before, "key.chain is another");
}

TEST(a_chain_that_cannot_grow_says_why)
{
    int folder = make_folder();
    auto_bytes record = { 0 };
    struct rlimit old, small = { 0 };
    error err;
    bytes_add_text(&record, "a record");
    require(symlinkat("elsewhere", folder, ".key.chain.new") == 0, "no link");
    expect(key_chain_add(folder, &record, &err) == 0, "%s", err.text);
    expect(size_of(folder, "elsewhere") < 0 && size_of(folder, "key.chain") == 9, "it went astray");
    require(getrlimit(RLIMIT_FSIZE, &old) == 0 && signal(SIGXFSZ, SIG_IGN) != SIG_ERR, "no limit");
    small.rlim_cur = 12; /* as on a disk with that many free bytes: a short write, then a failure */
    small.rlim_max = old.rlim_max;
    require(setrlimit(RLIMIT_FSIZE, &small) == 0, "no limit");
    expect_not_added(folder, &record, ERR_SYSTEM, EFBIG);
    require(setrlimit(RLIMIT_FSIZE, &old) == 0, "no limit");
    int file = openat(folder, "key.chain", O_WRONLY | O_CLOEXEC);
    require(file >= 0 && ftruncate(file, CHAIN_FILE_MAX - 4) == 0, "it does not grow");
    (void) close(file);
    expect_not_added(folder, &record, ERR_LIMIT, 0);
    require(unlinkat(folder, "key.chain", 0) == 0 && symlinkat("x", folder, "key.chain") == 0,
            "no link");
    expect_not_added(folder, &record, ERR_SYSTEM, ELOOP);
    remove_folder(folder);
}

TEST(ids_carry_their_index)
{
    static const uint64_t indices[] = { 0, 1, 77, UINT64_C(0xFFFFFFFFFFFF) };
    char id[RECEIPT_ID_SIZE];
    uint64_t index;
    error err;
    for_each(wanted, indices) {
        receipt_make_id(*wanted, id);
        expect(receipt_read_id(id, &index, &err) == 0 && index == *wanted, "%s", id);
    }
    static const char *const wrong[] = { "", "rcp_", "run_00000000000000000000000000000000",
                                         "rcp_0000000000000000000000000000000G" };
    for_each(text, wrong)
        expect(receipt_read_id(*text, &index, &err) < 0, "'%s' is an id", *text);
}

TESTS(CASE(records_are_found_again_across_segments), CASE(several_writers_make_one_log),
      CASE(what_is_torn_is_cut_off_and_nothing_else),
      CASE(what_a_checkpoint_covers_is_not_cut_off_in_silence),
      CASE(a_key_that_others_may_read_is_refused), CASE(a_next_key_that_cannot_be_read_stays),
      CASE(a_chain_that_cannot_grow_says_why),
      CASE(what_a_sync_has_refused_is_read_and_written_again),
      CASE(what_a_sync_has_refused_and_is_gone_is_never_signed), CASE(ids_carry_their_index))
