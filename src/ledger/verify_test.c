/* verify_test.c - a verification names what was changed in the log. */
#include "ledger/verify.h"

#include "ledger/ledger_test_folder.h"
#include "ledger/segment.h"

#include <sys/stat.h>

struct told {
    const char *wanted;
    bool is_named;
    unsigned count;
    char first[64];
};

static void hear(void *context, const char *what, const char *why)
{
    struct told *told = context;
    (void) why;
    told->is_named |= told->wanted && strncmp(what, told->wanted, strlen(told->wanted)) == 0;
    if (told->count++ == 0)
        (void) snprintf(told->first, sizeof told->first, "%s", what);
}

static void expect_named(int folder, const struct public_key *key, const char *what, off_t at)
{
    struct told told = { .wanted = what };
    struct verify_order order = { .folder = folder, .key = key, .problem = hear, .context = &told };
    struct verify_report report;
    error err;
    require(log_verify(&order, &report, &err) == 0, "%s", err.text);
    expect(what ? told.is_named : told.count == 0, "byte %lld: '%s' is reported, not '%s'",
           (long long) at, told.first, what ? what : "");
}

struct place {
    const char *file;
    const char *named[2]; /* in the first half, and in the second */
};

static void change_each_byte(int folder, const struct public_key *key, const struct place *place)
{
    auto_fd file = openat(folder, place->file, O_RDWR | O_CLOEXEC);
    struct stat status;
    require(fstat(file, &status) == 0, "no %s", place->file);
    for (off_t at = 0; at < status.st_size; at++) {
        unsigned char byte;
        require(pread(file, &byte, 1, at) == 1, "cannot read");
        unsigned char other = byte ^ (unsigned char) (1 << at % 8);
        require(pwrite(file, &other, 1, at) == 1, "cannot write");
        expect_named(folder, key, place->named[at >= status.st_size / 2], at);
        require(pwrite(file, &byte, 1, at) == 1, "cannot write");
    }
}

TEST(no_byte_of_a_log_changes_unseen)
{
    static const struct place facts[] = {
        { "00000000000000000000.log", { "record 0", "record 1" } },
        { "tree", { "tree", "tree" } },
        { "checkpoint", { "checkpoint", "checkpoint" } },
    };
    int folder = make_folder();
    struct ledger *ledger = open_ledger(folder);
    add(ledger, "one");
    add(ledger, "two");
    struct public_key key = *ledger_key(ledger);
    ledger_close(ledger);
    expect_named(folder, &key, NULL, -1);
    for_each(fact, facts)
        change_each_byte(folder, &key, fact);
    remove_folder(folder);
}

TESTS(CASE(no_byte_of_a_log_changes_unseen))
