/* ledger_past.c - reads old records, and deletes the oldest segments. */
#include "ledger/ledger_internal.h"

#include "base/auto_free.h"
#include "ledger/segment.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int ledger_first(struct ledger *ledger, uint64_t *ret_first, error *err)
{
    auto_free uint64_t *firsts = NULL;
    size_t count = 0;
    if (segments_list(ledger->folder, &firsts, &count, err) < 0)
        return -1;
    *ret_first = count > 0 ? firsts[0] : 0;
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

bool ledger_retention(struct ledger *ledger, uint64_t *ret_first)
{
    error unused;
    auto_free uint64_t *firsts = NULL;
    uint64_t kept = 0;
    size_t count = 0;
    if (ledger->settings.keep_max == 0 ||
        segments_list(ledger->folder, &firsts, &count, &unused) < 0)
        return false;
    size_t from = count;
    while (from > 0) { /* the newest is always kept */
        char name[SEGMENT_NAME_SIZE];
        struct stat status;
        segment_name(firsts[from - 1], name);
        if (fstatat(ledger->folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
            break;
        kept += (uint64_t) status.st_size;
        if (from < count && kept > ledger->settings.keep_max)
            break;
        from--;
    }
    bool is_due = from > 0 && from < count && firsts[from] <= ledger->covered.size;
    if (is_due)
        *ret_first = firsts[from];
    return is_due;
}

void ledger_drop_before(int folder, uint64_t first)
{
    error unused;
    auto_free uint64_t *firsts = NULL;
    size_t count = 0;
    if (first == 0 || segments_list(folder, &firsts, &count, &unused) < 0)
        return;
    for (size_t i = 0; i < count && firsts[i] < first; i++) {
        char name[SEGMENT_NAME_SIZE];
        segment_name(firsts[i], name);
        (void) unlinkat(folder, name, 0);
    }
}
