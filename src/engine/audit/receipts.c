/* receipts.c - the records of the log: receipts of executions, signed and sealed, and audit
 * events. */
#include "engine/audit/audit_log_internal.h"

#include "base/clock.h"
#include "engine/observe/log.h"
#include "engine/observe/loop_monitor.h"
#include "engine/observe/metrics.h"
#include "ledger/audit_events.h"
#include "ledger/envelope.h"

#include <stdio.h>
#include <string.h>

void receipts_nonce(const struct receipts *receipts, const char *execution,
                    struct opening_key *ret_nonce)
{
    opening_nonce(&receipts->secret, execution, ret_nonce);
}

void receipts_commit(const struct receipts *receipts, const char *id, const char *item,
                     const char *sha256, char ret_commitment[OPENING_HEX_SIZE])
{
    struct opening_key nonce, key;
    receipts_nonce(receipts, id, &nonce);
    opening_item(&nonce, item, NULL, &key);
    opening_mask(&key, sha256, ret_commitment);
}

/* Set here and not by each caller. */
static void set_nonce(const struct receipts *receipts, struct receipt_facts *facts,
                      struct opening_key *nonce)
{
    receipts_nonce(receipts, facts->id, nonce);
    facts->nonce = nonce;
}

int receipt_note(struct receipts *receipts, const struct receipt_facts *facts, unsigned *ret_note,
                 error *err)
{
    auto_bytes opened = { 0 };
    struct intent intent = { facts->id, &opened, receipts->is_durable };
    struct receipt_facts own = *facts;
    struct opening_key nonce;
    set_nonce(receipts, &own, &nonce);
    return receipts_have_room(receipts, err) < 0 ||
                   statement_write_opened(&own, &opened, err) < 0 ||
                   intents_note(receipts->intents, &intent, ret_note, err) < 0
               ? -1
               : 0;
}

void receipt_strike(struct receipts *receipts, unsigned note)
{
    if (note != NOTE_NONE)
        intents_strike(receipts->intents, note);
}

/* The source of a record: `write` makes its payload from `what`. */
struct matter {
    const char *type;
    int (*write)(const void *what, const struct receipts *receipts,
                 const struct statement_place *place, struct bytes *out, error *err);
    const void *what;
};

/* Begins a record; the ledger writes in two steps. */
static int begin_record(struct receipts *receipts, const struct matter *matter,
                        struct statement_place *place, struct bytes *payload, error *err)
{
    place->at_ms = wall_clock_ms();
    if (ledger_begin(receipts->ledger, &place->before, err) < 0)
        return -1;
    place->origin = ledger_key(receipts->ledger)->name;
    receipt_make_id(place->before.size, place->id);
    if (matter->write(matter->what, receipts, place, payload, err) == 0)
        return 0;
    ledger_abandon(receipts->ledger);
    return -1;
}

static int add_record(struct receipts *receipts, const struct matter *matter,
                      struct statement_place *place, error *err)
{
    auto_bytes payload = { 0 };
    struct loop_place before = loop_enter(CAUSE_LOG, NULL);
    int done = begin_record(receipts, matter, place, &payload, err);
    if (done == 0)
        done = ledger_commit(receipts->ledger, matter->type, &payload, err);
    loop_leave(before);
    if (done == 0)
        receipts_sync_soon(receipts);
    return done;
}

static int write_facts(const void *what, const struct receipts *receipts,
                       const struct statement_place *place, struct bytes *out, error *err)
{
    struct receipt_facts facts = *(const struct receipt_facts *) what;
    struct opening_key nonce;
    set_nonce(receipts, &facts, &nonce);
    return statement_write(&facts, &receipts->machine, place, out, err);
}

/* If the whole receipt cannot be written, a minimal one may be. A record that was added but not
 * synced is not added again, and neither is one after a wait for the lock. */
static int add_receipt(struct receipts *receipts, const struct receipt_facts *facts,
                       struct statement_place *place, error *err)
{
    uint64_t size = ledger_size(receipts->ledger);
    struct receipt_facts few = *facts;
    struct matter matter = { TYPE_STATEMENT, write_facts, facts };
    error why;
    if (add_record(receipts, &matter, place, &why) == 0)
        return 0;
    few.is_minimal = true;
    matter.what = &few;
    *err = why;
    if (ledger_size(receipts->ledger) != size || why.code == ERR_BUSY ||
        add_record(receipts, &matter, place, err) < 0)
        return -1;
    metric_add(METRIC_RECEIPTS_MINIMAL, 0, 1);
    log_event(RECEIPTS_MINIMAL, TEXT("execution", facts->id), TEXT("cause", why.text));
    return 0;
}

int receipt_write(struct receipts *receipts, const struct receipt_facts *facts, unsigned note,
                  char ret_id[RECEIPT_ID_SIZE], error *err)
{
    struct statement_place place;
    if (add_receipt(receipts, facts, &place, err) == 0) {
        receipt_strike(receipts, note);
        memcpy(ret_id, place.id, RECEIPT_ID_SIZE);
        return 0;
    }
    if (note != NOTE_NONE)
        intents_leave(receipts->intents, note);
    metric_add(METRIC_RECEIPTS_FAILED, 0, 1);
    log_event(RECEIPTS_NOT_WRITTEN, TEXT("execution", facts->id), TEXT("cause", err->text));
    return under(err, "write the receipt of %s", facts->id);
}

/* A receipt that does not fit is replaced by a minimal one. */
int receipt_seal(struct receipts *receipts, const struct receipt_facts *facts, struct bytes *out,
                 error *err)
{
    struct statement_place nowhere = { .origin = ledger_key(receipts->ledger)->name };
    struct receipt_facts few = *facts;
    struct opening_key nonce;
    auto_bytes text = { 0 };
    set_nonce(receipts, &few, &nonce);
    if (write_facts(facts, receipts, &nowhere, &text, err) < 0)
        return -1;
    few.is_minimal = true;
    if (opening_seal(&nonce, &text, out, err) == 0)
        return 0;
    text.size = 0;
    return write_facts(&few, receipts, &nowhere, &text, err) < 0
               ? -1
               : opening_seal(&nonce, &text, out, err);
}

struct event {
    const char *kind;
    const struct event_field *fields;
};

static int write_event(const void *what, const struct receipts *receipts,
                       const struct statement_place *place, struct bytes *out, error *err)
{
    const struct event *event = what;
    (void) receipts;
    return statement_write_event(event->kind, event->fields, place, out, err);
}

int audit_write(struct receipts *receipts, const char *kind, const struct event_field *fields,
                error *err)
{
    struct statement_place place;
    const struct event event = { kind, fields };
    const struct matter matter = { TYPE_EVENT, write_event, &event };
    if (audit_event_check(kind, fields, err) < 0 || add_record(receipts, &matter, &place, err) < 0)
        return under(err, "write the event %s", kind);
    return 0;
}

int receipt_began(struct receipts *receipts, const struct receipt_facts *facts, error *err)
{
    const struct fact_file *first = facts->inputs && facts->input_count > 0 ? facts->inputs : NULL;
    char item[64], commitment[OPENING_HEX_SIZE] = "";
    (void) snprintf(item, sizeof item, "inputs/%.48s", first ? first->name : "");
    if (first)
        receipts_commit(receipts, facts->id, item, first->sha256, commitment);
    const struct event_field fields[] = {
        { "commitment", commitment, 0 },
        { "execution", facts->id, 0 },
        { "key", facts->key ? facts->key : "owner", 0 },
        { "kind", facts->kind, 0 },
        { "policy", facts->policy.digest ? facts->policy.digest : "", 0 },
        { "session", facts->session ? facts->session : "", 0 },
        { "tenant", facts->tenant ? facts->tenant : "", 0 },
        { 0 },
    };
    return audit_write(receipts, "execution.began", fields, err);
}
