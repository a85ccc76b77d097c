/* ledger_test_folder.h - a log in a folder of its own, for the tests of this folder. */
#pragma once

#include "base/cleanup.h"
#include "base/table.h"
#include "base/test.h"
#include "ledger/envelope.h"
#include "ledger/ledger.h"
#include "ledger/statement.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* In memory, since each sync to a disk would wait. */
static inline int make_folder(void)
{
    char path[] = "/dev/shm/glovebox-ledger-XXXXXX";
    require(mkdtemp(path), "no folder");
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Its files, those beneath `open`, and itself. */
static inline void remove_folder(int folder)
{
    static const char *const below[] = { "open", "." };
    for_each(name, below) {
        int copy = openat(folder, *name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *entries = copy < 0 ? NULL : fdopendir(copy);
        struct dirent *entry;
        while (entries && (entry = readdir(entries))) /* NOLINT(concurrency-mt-unsafe): ours */
            (void) unlinkat(copy, entry->d_name, 0);
        if (entries)
            (void) closedir(entries);
        (void) unlinkat(folder, "open", AT_REMOVEDIR);
    }
    char descriptor[64], name[128] = "";
    (void) snprintf(descriptor, sizeof descriptor, "/proc/self/fd/%d", folder);
    if (readlink(descriptor, name, sizeof name - 1) > 0)
        (void) rmdir(name);
    (void) close(folder);
}

static inline struct ledger *open_ledger(int folder)
{
    static const struct ledger_settings settings = { .segment_max = 2000, .reserve = 4096 };
    struct ledger *ledger = NULL;
    error err;
    require(ledger_open(folder, &settings, &ledger, &err) == 0, "%s", err.text);
    return ledger;
}

static inline void add(struct ledger *ledger, const char *word)
{
    struct statement_place place = { .origin = ledger_key(ledger)->name, .at_ms = 1 };
    struct event_field fields[] = { { "word", word, 0 }, { NULL, NULL, 0 } };
    auto_bytes payload = { 0 };
    error err;
    require(ledger_begin(ledger, &place.before, &err) == 0, "%s", err.text);
    receipt_make_id(place.before.size, place.id);
    require(statement_write_event("test.word", fields, &place, &payload, &err) == 0 &&
                ledger_commit(ledger, TYPE_EVENT, &payload, &err) == 0,
            "%s", err.text);
}
