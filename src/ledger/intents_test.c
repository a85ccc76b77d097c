/* intents_test.c - runs that were open when their daemon died are recorded as lost. */
#include "ledger/intents.h"

#include "ledger/ledger_test_folder.h"

#include <limits.h>
#include <sys/wait.h>

static void note(struct intents *intents, const char *id, unsigned *ret_slot)
{
    static const struct opening_key nonce = { { 0 } };
    struct receipt_facts facts = { .nonce = &nonce, .id = id, .kind = "run", .submitted_ms = 5 };
    auto_bytes opened = { 0 };
    struct intent intent = { .id = id, .opened = &opened };
    error err;
    require(statement_write_opened(&facts, &opened, &err) == 0 &&
                intents_note(intents, &intent, ret_slot, &err) == 0,
            "%s", err.text);
}

TEST(open_runs_are_reported_as_lost_once)
{
    int folder = make_folder();
    struct ledger *ledger = open_ledger(folder);
    struct intents *intents = NULL;
    unsigned slots[3], lost = 9;
    error err;
    require(intents_open(folder, ledger, &intents, &err) == 0, "%s", err.text);
    note(intents, "run_open", &slots[0]);
    note(intents, "run_ended", &slots[1]);
    note(intents, "run_told", &slots[2]);
    intents_strike(intents, slots[1]);
    static const struct opening_key nonce = { { 0 } };
    struct receipt_facts facts = {
        .nonce = &nonce, .id = "run_told", .kind = "run", .verdict.limit = LIMITS
    };
    struct fact_place machine = { .version = "1" };
    struct statement_place place = { .origin = "x" };
    auto_bytes statement = { 0 };
    require(ledger_begin(ledger, &place.before, &err) == 0 &&
                statement_write(&facts, &machine, &place, &statement, &err) == 0 &&
                ledger_commit(ledger, TYPE_STATEMENT, &statement, &err) == 0,
            "%s", err.text);
    expect(intents_recover(folder, ledger, &lost, &err) == 0 && lost == 0,
           "a living daemon's runs are lost: %u", lost);
    intents_close(intents); /* as when the process dies: the file stays, its lock is dropped */
    expect(intents_recover(folder, ledger, &lost, &err) == 0 && lost == 1, "%u are lost", lost);
    expect(ledger_size(ledger) == 2, "%llu records", (unsigned long long) ledger_size(ledger));
    expect(!ledger_is_dirty(ledger), "the list has gone, and what it told is not on the disk");
    expect(intents_recover(folder, ledger, &lost, &err) == 0 && lost == 0, "again: %u", lost);
    ledger_close(ledger);
    remove_folder(folder);
}

/* The first notes go into the mapped part of the file, later ones are appended: all are found in
 * it, and so are those of both that were struck out. */
TEST(more_notes_than_are_stored_are_lost_as_well)
{
    enum { NOTES = 400, STRUCK = 320 }; /* 256 fit into the mapped part */
    int folder = make_folder();
    struct ledger *ledger = open_ledger(folder);
    struct intents *intents = NULL;
    unsigned slots[NOTES], lost = 0;
    error err;
    require(intents_open(folder, ledger, &intents, &err) == 0, "%s", err.text);
    for (unsigned i = 0; i < NOTES; i++) {
        char id[32];
        (void) snprintf(id, sizeof id, "run_%u", i);
        note(intents, id, &slots[i]);
    }
    for (unsigned i = 0; i < STRUCK; i++)
        intents_strike(intents, slots[(size_t) i * NOTES / STRUCK]);
    note(intents, "run_again", &slots[0]); /* in the place of a note that was struck out */
    intents_close(intents);
    expect(intents_recover(folder, ledger, &lost, &err) == 0 && lost == NOTES - STRUCK + 1,
           "%u are lost", lost);
    ledger_close(ledger);
    remove_folder(folder);
}

TEST(an_execution_that_two_slots_hold_is_lost_once)
{
    int folder = make_folder();
    struct ledger *ledger = open_ledger(folder);
    struct intents *intents = NULL;
    unsigned slot, lost = 0;
    error err;
    require(intents_open(folder, ledger, &intents, &err) == 0, "%s", err.text);
    note(intents, "run_same", &slot);
    note(intents, "run_other", &slot);
    note(intents, "run_same", &slot);
    intents_close(intents);
    expect(intents_recover(folder, ledger, &lost, &err) == 0 && lost == 2, "%u are lost", lost);
    expect(ledger_size(ledger) == 2, "%llu records", (unsigned long long) ledger_size(ledger));
    ledger_close(ledger);
    remove_folder(folder);
}

/* A power cut takes records that were not synced, so that the lost receipt stands before them. */
TEST(an_execution_is_lost_once_in_a_log_that_a_power_cut_has_shortened)
{
    int folder = make_folder(), status;
    unsigned slot, lost = 0;
    struct intents *intents = NULL;
    error err;
    pid_t writer = fork();
    if (writer == 0) { /* its death releases its locks */
        struct ledger *ledger = open_ledger(folder);
        add(ledger, "not synced");
        require(intents_open(folder, ledger, &intents, &err) == 0, "%s", err.text);
        note(intents, "run_open", &slot);
        _exit(0);
    }
    require(waitpid(writer, &status, 0) == writer && status == 0, "the writer failed");
    auto_fd segment = openat(folder, "00000000000000000000.log", O_RDWR | O_CLOEXEC);
    auto_fd tree = openat(folder, "tree", O_RDWR | O_CLOEXEC);
    require(ftruncate(segment, 0) == 0 && ftruncate(tree, 0) == 0, "cannot cut");
    auto_fd open_folder = openat(folder, "open", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fdopendir(fcntl(open_folder, F_DUPFD_CLOEXEC, 0));
    const struct dirent *entry = NULL;
    do {
        entry = entries ? readdir(entries) : NULL; /* NOLINT(concurrency-mt-unsafe): ours */
    } while (entry && entry->d_name[0] == '.');
    require(entry && linkat(open_folder, entry->d_name, folder, "again", 0) == 0, "no list");
    char name[NAME_MAX + 1];
    (void) snprintf(name, sizeof name, "%s", entry->d_name);
    (void) closedir(entries);
    struct ledger *ledger = open_ledger(folder);
    expect(intents_recover(folder, ledger, &lost, &err) == 0 && lost == 1, "%u are lost", lost);
    /* As if that daemon had been killed before it removed the list. */
    require(linkat(folder, "again", open_folder, name, 0) == 0, "cannot put it back");
    expect(intents_recover(folder, ledger, &lost, &err) == 0 && lost == 0, "again: %u", lost);
    expect(ledger_size(ledger) == 1, "%llu records", (unsigned long long) ledger_size(ledger));
    ledger_close(ledger);
    remove_folder(folder);
}

TESTS(CASE(an_execution_that_two_slots_hold_is_lost_once),
      CASE(an_execution_is_lost_once_in_a_log_that_a_power_cut_has_shortened),
      CASE(open_runs_are_reported_as_lost_once), CASE(more_notes_than_are_stored_are_lost_as_well))
