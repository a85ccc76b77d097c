/* event.c - opens the log, as each of its writers does, writes, and signs a checkpoint. */
#include "receipt/event.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "receipt/envelope.h"
#include "receipt/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static int append(struct ledger *ledger, const char *kind, const struct event_field *fields,
                  error *err)
{
    struct statement_place place = { .origin = ledger_key(ledger)->name, .at_ms = wall_clock_ms() };
    auto_bytes payload = { 0 };
    if (ledger_begin(ledger, &place.before, err) < 0)
        return -1;
    receipt_make_id(place.before.size, place.id);
    if (statement_write_event(kind, fields, &place, &payload, err) < 0) {
        ledger_abandon(ledger);
        return -1;
    }
    return ledger_commit(ledger, TYPE_EVENT, &payload, err);
}

int event_append(int state, const char *kind, const struct event_field *fields, error *err)
{
    struct ledger_settings settings = { .sync_each = true };
    struct ledger *ledger = NULL;
    if (mkdirat(state, "log", 0700) < 0 && errno != EEXIST)
        return fail_os(err, "make the folder of the log");
    auto_fd folder = openat(state, "log", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (folder < 0)
        return fail_os(err, "open the folder of the log");
    if (ledger_open(folder, &settings, &ledger, err) < 0)
        return -1;
    int result = append(ledger, kind, fields, err);
    ledger_close(ledger);
    return result;
}
