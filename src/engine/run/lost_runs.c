/* lost_runs.c - a list of run ids from the last records of the log; the records are read on
 * request. */
#include "engine/run/lost_runs.h"

#include "engine/audit/audit_log.h"
#include "engine/observe/log.h"
#include "engine/run/queue.h"
#include "engine/run/run.h"
#include "engine/schedule/accounts.h"
#include "ledger/envelope.h"
#include "ledger/segment.h"
#include "json/member.h"

#include <json.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS_MAX = 1000 }; /* as many as queue.c keeps */

struct lost_run {
    char id[RUN_ID_SIZE];
    uint64_t index; /* of its receipt */
};

struct lost_runs {
    struct receipts *receipts; /* borrowed */
    uint64_t first;            /* all records from this one on are known */
    size_t count;
    struct lost_run runs[RECORDS_MAX];
};

/* JSON escapes quotes within texts, so this text can only be a member. */
static void note_run(struct lost_runs *lost_runs, const struct bytes *payload, uint64_t index)
{
    static const char words[] = "\"id\":\"run_";
    static const char hex[] = "0123456789abcdef";
    const char *found = memmem(payload->data, payload->size, words, sizeof words - 1);
    const char *id = found ? found + sizeof words - 1 - strlen("run_") : NULL;
    if (!id || payload->data + payload->size - id < RUN_ID_SIZE)
        return;
    struct lost_run *run = &lost_runs->runs[lost_runs->count];
    memcpy(run->id, id, RUN_ID_SIZE - 1);
    run->id[RUN_ID_SIZE - 1] = '\0';
    run->index = index;
    lost_runs->count += strspn(run->id + strlen("run_"), hex) == RUN_ID_SIZE - 1 - strlen("run_");
}

/* A record that cannot be read must not stop the daemon; all records after it are known. */
static int note_record(void *context, const struct record *record, error *err)
{
    struct lost_runs *lost_runs = context;
    auto_envelope envelope = { 0 };
    if (envelope_read(record->data, record->size, &envelope, err) < 0) {
        log_event(RECEIPTS_NOT_READ, COUNT("index", (int64_t) record->index),
                  TEXT("cause", err->text));
        lost_runs->count = 0;
        lost_runs->first = record->index + 1;
        return 0;
    }
    note_run(lost_runs, &envelope.payload, record->index);
    return lost_runs->count < RECORDS_MAX ? 0 : 1;
}

int lost_runs_open(struct receipts *receipts, struct lost_runs **ret_past, error *err)
{
    struct ledger *ledger = receipts_ledger(receipts);
    uint64_t size = ledger_size(ledger), first;
    if (ledger_first(ledger, &first, err) < 0)
        return -1;
    struct lost_runs *lost_runs = calloc(1, sizeof *lost_runs);
    if (!lost_runs)
        return fail(err, ERR_SYSTEM, "no memory for the runs of earlier daemons");
    lost_runs->receipts = receipts;
    lost_runs->first = size > first + RECORDS_MAX ? size - RECORDS_MAX : first;
    if (ledger_each(ledger, lost_runs->first, note_record, lost_runs, err) < 0) {
        free(lost_runs);
        return -1;
    }
    *ret_past = lost_runs;
    return 0;
}

void lost_runs_free(struct lost_runs *lost_runs)
{
    free(lost_runs);
}

static const struct lost_run *find(const struct lost_runs *lost_runs, const char *id)
{
    for (size_t i = 0; lost_runs && i < lost_runs->count; i++)
        if (strcmp(lost_runs->runs[i].id, id) == 0)
            return &lost_runs->runs[i];
    return NULL;
}

bool lost_runs_never_began(const struct lost_runs *lost_runs, const char *id, uint64_t log_size)
{
    return lost_runs && log_size >= lost_runs->first && !find(lost_runs, id);
}

static const char *text(struct json_object *object, const char *name)
{
    struct json_object *value = json_member(object, name);
    return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
}

/* The owner of the daemon has no tenant, and sees runs without one. */
static bool is_seen(const struct account *account, struct json_object *opened)
{
    const char *tenant = text(json_member(opened, "caller"), "tenant");
    const char *own = account->key.id[0] ? account->key.tenant : NULL;
    return tenant && own ? strcmp(tenant, own) == 0 : tenant == own;
}

static const char *text_or_empty(struct json_object *object, const char *name)
{
    const char *found = text(object, name);
    return found ? found : "";
}

static void write_lost(const char *id, const char *receipt, struct json_object *opened,
                       struct bytes *out)
{
    struct json_object *policy = json_member(opened, "policy");
    struct json_object *template = json_member(opened, "template");
    struct lost_result lost = {
        .id = id,
        .receipt = receipt,
        .policy = { text_or_empty(policy, "name"), text_or_empty(policy, "digest") },
        .template = { text_or_empty(template, "name"), text_or_empty(template, "digest") },
    };
    result_write_lost(&lost, out);
}

static int tell(const struct account *account, const char *id, struct json_object *predicate,
                struct bytes *out, error *err)
{
    struct json_object *opened = json_member(predicate, "opened"); /* only lost ones have it */
    const char *receipt = text(predicate, "id");
    const char *status = text(json_member(predicate, "outcome"), "status");
    if (!is_seen(account, opened ? opened : predicate))
        return fail(err, ERR_NOT_FOUND, "no run has the id '%.60s'", id);
    if (opened) {
        write_lost(id, receipt, opened, out);
        return 0;
    }
    return fail(err, ERR_NOT_FOUND,
                "%.60s ended (%.20s) before gloveboxd was restarted, and its result is not "
                "kept; see its receipt %.40s",
                id, status ? status : "", receipt ? receipt : "");
}

int lost_runs_result(const struct lost_runs *lost_runs, const struct account *account,
                     const char *id, struct bytes *out, error *err)
{
    const struct lost_run *run = find(lost_runs, id);
    auto_envelope envelope = { 0 };
    auto_bytes record = { 0 };
    if (!run)
        return fail(err, ERR_NOT_FOUND,
                    "no run has the id '%.60s'; results are kept for the last thousand runs only",
                    id);
    if (ledger_read(receipts_ledger(lost_runs->receipts), run->index, &record, err) < 0 ||
        envelope_read(record.data, record.size, &envelope, err) < 0)
        return -1;
    struct json_tokener *tokener = json_tokener_new();
    auto_json statement =
        tokener ? json_tokener_parse_ex(tokener, envelope.payload.data, (int) envelope.payload.size)
                : NULL;
    int result = tell(account, id, json_member(statement, "predicate"), out, err);
    if (tokener)
        json_tokener_free(tokener);
    return result;
}
