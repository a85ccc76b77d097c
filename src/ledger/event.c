/* event.c - opens the log, writes one record, and signs a checkpoint. */
#include "ledger/event.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "ledger/audit_events.h"
#include "ledger/chain.h"
#include "ledger/envelope.h"
#include "ledger/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static int append(struct ledger *ledger, const char *kind, const struct event_field *fields,
                  error *err)
{
    struct statement_place place = { .at_ms = wall_clock_ms() };
    auto_bytes payload = { 0 };
    if (ledger_begin(ledger, &place.before, err) < 0)
        return -1;
    place.origin = ledger_key(ledger)->name;
    receipt_make_id(place.before.size, place.id);
    if (statement_write_event(kind, fields, &place, &payload, err) < 0) {
        ledger_abandon(ledger);
        return -1;
    }
    return ledger_commit(ledger, TYPE_EVENT, &payload, err);
}

static int tell_rotation(const struct merkle_head *before, const struct public_key *old,
                         const struct public_key *fresh, struct bytes *payload, error *err)
{
    char old_text[KEY_TEXT_SIZE], fresh_text[KEY_TEXT_SIZE];
    struct statement_place place = { .origin = old->name,
                                     .before = *before,
                                     .at_ms = wall_clock_ms() };
    public_key_print(old, old_text);
    public_key_print(fresh, fresh_text);
    receipt_make_id(before->size, place.id);
    const struct event_field fields[] = { { "new_key", fresh_text, 0 },
                                          { "old_key", old_text, 0 },
                                          { 0 } };
    return statement_write_event(CHAIN_EVENT, fields, &place, payload, err);
}

static int open_ledger(int state, struct ledger **ret_ledger, error *err)
{
    struct ledger_settings settings = { .sync_each = true };
    if (mkdirat(state, "log", 0700) < 0 && errno != EEXIST)
        return fail_os(err, "make the folder of the log");
    auto_fd folder = openat(state, "log", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (folder < 0)
        return fail_os(err, "open the folder of the log");
    return ledger_open(folder, &settings, ret_ledger, err);
}

int event_rotate_key(int state, error *err)
{
    struct ledger *ledger = NULL;
    if (open_ledger(state, &ledger, err) < 0)
        return -1;
    int result = ledger_rotate_key(ledger, tell_rotation, err);
    ledger_close(ledger);
    return result;
}

int event_append(int state, const char *kind, const struct event_field *fields, error *err)
{
    struct ledger *ledger = NULL;
    if (audit_event_check(kind, fields, err) < 0 || open_ledger(state, &ledger, err) < 0)
        return -1;
    int result = append(ledger, kind, fields, err);
    ledger_close(ledger);
    return result;
}
