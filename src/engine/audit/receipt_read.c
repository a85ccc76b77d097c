/* receipt_read.c - reads records of the log for those that may see them: one by its id, or a
 * page. */
#include "engine/audit/audit_log_internal.h"

#include "ledger/envelope.h"
#include "ledger/segment.h"
#include "json/canonical_writer.h"
#include "json/writer.h"

#include <string.h>

/* How much one request may make the event loop read. */
enum { LOOKED_MAX = 100, LOOKED_BYTES_MAX = 64 * 1024 };

/* Canonical JSON has one spelling, and quotes in its texts are escaped: the payload has this member
 * if and only if it contains this text. */
static bool has_member(const struct bytes *payload, const char *name, const char *value)
{
    struct jcs json = { 0 };
    error err;
    jcs_open(&json, '{');
    jcs_text_field(&json, name, value);
    jcs_close(&json, '}');
    bool has = jcs_end(&json, &err) == 0 &&
               memmem(payload->data, payload->size, json.out.data + 1, json.out.size - 2);
    jcs_done(&json);
    return has;
}

static bool is_of(const struct envelope *envelope, const char *tenant)
{
    return !tenant || has_member(&envelope->payload, "tenant", tenant);
}

/* The id contains the index of the record; the signed payload there must have the whole id. */
int receipt_read(struct receipts *receipts, const char *id, const char *tenant, struct bytes *out,
                 error *err)
{
    uint64_t index;
    auto_bytes record = { 0 };
    auto_envelope envelope = { 0 };
    if (receipt_read_id(id, &index, err) < 0)
        return -1;
    bool is_there = ledger_read(receipts->ledger, index, &record, err) == 0;
    if (is_there ? envelope_read(record.data, record.size, &envelope, err) < 0
                 : err->code != ERR_NOT_FOUND)
        return -1;
    /* The same words for all: the caller may not know how long the log is. */
    if (!is_there || !has_member(&envelope.payload, "id", id) || !is_of(&envelope, tenant))
        return fail(err, ERR_NOT_FOUND,
                    "no receipt has the id %s; GET /v1/receipts lists those that are kept", id);
    bytes_add(out, record.data, record.size);
    return 0;
}

struct listing {
    struct receipt_page *page;
    const char *tenant;
    struct bytes *out;
    uint64_t looked, looked_bytes;
};

enum { PAGE_IS_FULL = 1 };

static int add_record(void *context, const struct record *record, error *err)
{
    struct listing *listing = context;
    struct receipt_page *page = listing->page;
    auto_envelope envelope = { 0 };
    page->next = record->index;
    page->has_more = page->count == page->max || listing->looked == LOOKED_MAX ||
                     listing->looked_bytes >= LOOKED_BYTES_MAX;
    if (page->has_more)
        return PAGE_IS_FULL;
    page->next++;
    listing->looked++;
    listing->looked_bytes += record->size;
    if (envelope_read(record->data, record->size, &envelope, err) < 0)
        return -1;
    if (!is_of(&envelope, listing->tenant))
        return 0;
    page->count++;
    json_open(listing->out, '{');
    json_key(listing->out, "envelope");
    json_raw(listing->out, record->data, record->size);
    json_count_field(listing->out, "index", record->index);
    json_close(listing->out, '}');
    return 0;
}

int receipts_list(struct receipts *receipts, const char *tenant, struct receipt_page *page,
                  struct bytes *out, error *err)
{
    struct listing listing = { page, tenant, out, 0, 0 };
    page->next = page->cursor;
    page->count = 0;
    page->has_more = false;
    return ledger_each(receipts->ledger, page->cursor, add_record, &listing, err) < 0 ? -1 : 0;
}
