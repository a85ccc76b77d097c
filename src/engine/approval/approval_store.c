/* approval_store.c - one table in SQLite, used only by the statements below. Cards contain code: a
 * deleted one is overwritten (secure_delete), and the rollback journal keeps no copy of it. */
#include "engine/approval/approval_store.h"

#include "keys/database.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum statement {
    ADD,
    CHANGE,
    FIND_ID,
    FIND_BINDING,
    FIND_REACH,
    FIND_DUE,
    COUNT,
    LIST,
    LIST_TENANT,
    LIST_TENANT_OWNER,
    LIST_ASKER,
    LIST_STATE,
    LIST_TENANT_STATE,
    LIST_TENANT_OWNER_STATE,
    LIST_ASKER_STATE,
    CARD,
    FORGET,
    STATEMENTS
};

/* The upper half of the column `reaches` has the reasons: a file of an earlier version has no
 * column for them. */
enum { REASONS_AT = 16 };

#define COLUMNS                                                                            \
    "id, state, asker, tenant, policy, policy_digest, session, binding, sha256, reaches, " \
    "out_of_band, asked, expires, reach, decided, until, approver, reason, run"

static const char schema[] =
    "PRAGMA secure_delete = ON; PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL;"
    "CREATE TABLE IF NOT EXISTS approvals (id TEXT PRIMARY KEY, state INTEGER NOT NULL, asker TEXT "
    "NOT NULL, tenant TEXT NOT NULL, policy TEXT NOT NULL, policy_digest TEXT NOT NULL, session "
    "TEXT "
    "NOT NULL, binding BLOB NOT NULL, sha256 TEXT NOT NULL, reaches INTEGER NOT NULL, out_of_band "
    "INTEGER NOT NULL, asked INTEGER NOT NULL, expires INTEGER NOT NULL, reach INTEGER NOT NULL, "
    "decided INTEGER NOT NULL, until INTEGER NOT NULL, approver TEXT NOT NULL, reason TEXT NOT "
    "NULL, "
    "run TEXT NOT NULL, card BLOB) STRICT;"
    "CREATE INDEX IF NOT EXISTS by_binding ON approvals (binding);"
    "CREATE INDEX IF NOT EXISTS by_state ON approvals (state, asker);"
    "CREATE INDEX IF NOT EXISTS in_order ON approvals (asked, id);"
    "CREATE INDEX IF NOT EXISTS of_state ON approvals (state, asked, id);"
    "CREATE INDEX IF NOT EXISTS of_tenant ON approvals (tenant, asked, id);"
    "CREATE INDEX IF NOT EXISTS of_tenant_state ON approvals (tenant, state, asked, id);"
    "CREATE INDEX IF NOT EXISTS of_asker ON approvals (asker, asked, id);"
    "CREATE INDEX IF NOT EXISTS of_asker_state ON approvals (asker, state, asked, id);";

/* Each has an index in the order of its rows, so that only the rows of a page are read. */
#define PAGE_OF(which)                                                                       \
    "SELECT " COLUMNS " FROM approvals WHERE " which " AND (asked, id) > (?1, ?2) ORDER BY " \
    "asked, id LIMIT ?3"

/* 0 pending, 1 approved; reach 4 session, 8 time: approvals.h, policy.h. */
static const char *const texts[STATEMENTS] = {
    [ADD] = "INSERT INTO approvals (" COLUMNS ", card) VALUES "
            "(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20)",
    [CHANGE] =
        "UPDATE approvals SET state = ?2, reach = ?14, decided = ?15, until = ?16, approver = "
        "?17, reason = ?18, run = ?19, card = NULL WHERE id = ?1 AND state = ?20",
    [FIND_ID] = "SELECT " COLUMNS " FROM approvals WHERE id = ?1",
    [FIND_BINDING] =
        "SELECT " COLUMNS " FROM approvals WHERE binding = ?8 AND asker = ?3 AND tenant "
        "= ?4 ORDER BY asked DESC, rowid DESC LIMIT 1",
    [FIND_REACH] =
        "SELECT " COLUMNS " FROM approvals WHERE state = 1 AND asker = ?3 AND tenant = ?4 "
        "AND policy_digest = ?6 AND until > ?12 AND (reach = 8 OR (reach = 4 AND session = "
        "?7 AND session <> '')) ORDER BY until DESC LIMIT 1",
    [FIND_DUE] = "SELECT " COLUMNS " FROM approvals WHERE state = 0 AND expires <= ?13 LIMIT 1",
    [COUNT] = "SELECT count(*), coalesce(sum(asker = ?2), 0) FROM approvals WHERE state = 0 AND "
              "tenant = ?1",
    [LIST] = PAGE_OF("1"),
    [LIST_TENANT] = PAGE_OF("tenant = ?5"),
    [LIST_TENANT_OWNER] = PAGE_OF("(tenant = ?5 OR asker = '')"),
    [LIST_ASKER] = PAGE_OF("asker = ?6"),
    [LIST_STATE] = PAGE_OF("state = ?4"),
    [LIST_TENANT_STATE] = PAGE_OF("tenant = ?5 AND state = ?4"),
    [LIST_TENANT_OWNER_STATE] = PAGE_OF("(tenant = ?5 OR asker = '') AND state = ?4"),
    [LIST_ASKER_STATE] = PAGE_OF("asker = ?6 AND state = ?4"),
    [CARD] = "SELECT card FROM approvals WHERE id = ?1",
    [FORGET] = "DELETE FROM approvals WHERE state <> 0 AND max(until, decided, expires) < ?1",
};

_Static_assert(APPROVAL_PENDING == 0 && APPROVAL_APPROVED == 1 && APPROVAL_STATES == 6 &&
                   REACH_SESSION == 4 && REACH_TIME == 8,
               "numbers in the statements");

struct approval_store {
    struct database database;
    sqlite3_stmt *statements[STATEMENTS];
};

int approval_store_open(const char *folder, struct approval_store **ret_store, error *err)
{
    struct approval_store *store = calloc(1, sizeof *store);
    if (!store)
        return fail(err, ERR_SYSTEM, "no memory for approvals");
    const struct database_plan plan = { .folder = folder,
                                        .name = "approvals.db",
                                        .schema = schema,
                                        .count = STATEMENTS,
                                        .texts = texts };
    store->database.statements = store->statements;
    if (database_open(&plan, &store->database, err) < 0) {
        approval_store_close(store);
        return under(err, "approvals");
    }
    *ret_store = store;
    return 0;
}

void approval_store_close(struct approval_store *store)
{
    if (!store)
        return;
    database_close(&store->database);
    free(store);
}

/* In the order of COLUMNS; parameters that a statement does not have are left out. */
static void bind_row(sqlite3_stmt *statement, const struct approval *row)
{
    const char *const words[] = { NULL,
                                  row->id,
                                  NULL,
                                  row->asker,
                                  row->tenant,
                                  row->policy,
                                  row->policy_digest,
                                  row->session,
                                  NULL,
                                  row->sha256,
                                  NULL,
                                  NULL,
                                  NULL,
                                  NULL,
                                  NULL,
                                  NULL,
                                  NULL,
                                  row->approver,
                                  row->reason,
                                  row->run };
    const int64_t numbers[] = { 0,
                                0,
                                row->state,
                                0,
                                0,
                                0,
                                0,
                                0,
                                0,
                                0,
                                row->reaches | (int64_t) row->reasons << REASONS_AT,
                                row->is_out_of_band,
                                row->asked_ms,
                                row->expires_ms,
                                row->reach,
                                row->decided_ms,
                                row->until_ms,
                                0,
                                0,
                                0 };
    for (int at = 1; at < (int) (sizeof words / sizeof *words); at++)
        if (at == 8)
            (void) sqlite3_bind_blob(statement, at, row->binding, sizeof row->binding,
                                     SQLITE_TRANSIENT);
        else if (words[at])
            database_bind_text(statement, at, words[at]);
        else
            (void) sqlite3_bind_int64(statement, at, numbers[at]);
}

static void take_row(sqlite3_stmt *statement, struct approval *row)
{
    *row = (struct approval){
        .state = (enum approval_state) sqlite3_column_int(statement, 1),
        .reaches = (uint16_t) sqlite3_column_int64(statement, 9),
        .reasons = (uint32_t) (sqlite3_column_int64(statement, 9) >> REASONS_AT),
        .is_out_of_band = sqlite3_column_int(statement, 10) != 0,
        .asked_ms = sqlite3_column_int64(statement, 11),
        .expires_ms = sqlite3_column_int64(statement, 12),
        .reach = (uint32_t) sqlite3_column_int(statement, 13),
        .decided_ms = sqlite3_column_int64(statement, 14),
        .until_ms = sqlite3_column_int64(statement, 15),
    };
    database_take_text(statement, 0, row->id, sizeof row->id);
    database_take_text(statement, 2, row->asker, sizeof row->asker);
    database_take_text(statement, 3, row->tenant, sizeof row->tenant);
    database_take_text(statement, 4, row->policy, sizeof row->policy);
    database_take_text(statement, 5, row->policy_digest, sizeof row->policy_digest);
    database_take_text(statement, 6, row->session, sizeof row->session);
    database_take_text(statement, 8, row->sha256, sizeof row->sha256);
    database_take_text(statement, 16, row->approver, sizeof row->approver);
    database_take_text(statement, 17, row->reason, sizeof row->reason);
    database_take_text(statement, 18, row->run, sizeof row->run);
    if (sqlite3_column_bytes(statement, 7) == APPROVAL_BINDING_SIZE)
        memcpy(row->binding, sqlite3_column_blob(statement, 7), APPROVAL_BINDING_SIZE);
}

int approval_store_add(struct approval_store *store, const struct approval *approval,
                       const struct bytes *card, error *err)
{
    sqlite3_stmt *statement = database_begin(&store->database, ADD);
    bind_row(statement, approval);
    (void) sqlite3_bind_blob64(statement, 20, card->data, card->size, SQLITE_TRANSIENT);
    return database_finish(&store->database, statement, "keep an approval", err) < 0 ? -1 : 0;
}

int approval_store_change(struct approval_store *store, const struct approval *approval,
                          enum approval_state from, error *err)
{
    sqlite3_stmt *statement = database_begin(&store->database, CHANGE);
    bind_row(statement, approval);
    (void) sqlite3_bind_int(statement, 20, (int) from);
    return database_finish(&store->database, statement, "change an approval", err);
}

int approval_store_find(struct approval_store *store, enum approval_lookup lookup,
                        const struct approval *like, struct approval *ret_approval, error *err)
{
    static const enum statement statements[] = {
        [BY_ID] = FIND_ID, [BY_BINDING] = FIND_BINDING, [BY_REACH] = FIND_REACH, [BY_DUE] = FIND_DUE
    };
    sqlite3_stmt *statement = database_begin(&store->database, statements[lookup]);
    bind_row(statement, like);
    int result = sqlite3_step(statement);
    if (result == SQLITE_ROW)
        take_row(statement, ret_approval);
    (void) sqlite3_reset(statement);
    if (result != SQLITE_ROW && result != SQLITE_DONE)
        return database_failed(&store->database, "find an approval", err);
    return result == SQLITE_ROW;
}

int approval_store_count(struct approval_store *store, const struct approval *like,
                         uint64_t *ret_tenants, uint64_t *ret_askers, error *err)
{
    sqlite3_stmt *statement = database_begin(&store->database, COUNT);
    database_bind_text(statement, 1, like->tenant);
    database_bind_text(statement, 2, like->asker);
    if (sqlite3_step(statement) != SQLITE_ROW)
        return database_failed(&store->database, "count approvals", err);
    *ret_tenants = (uint64_t) sqlite3_column_int64(statement, 0);
    *ret_askers = (uint64_t) sqlite3_column_int64(statement, 1);
    (void) sqlite3_reset(statement);
    return 0;
}

static enum statement statement_of(const struct approval_page *page)
{
    bool is_any = page->state == APPROVAL_STATES;
    if (page->asker)
        return is_any ? LIST_ASKER : LIST_ASKER_STATE;
    if (page->tenant && page->with_owners)
        return is_any ? LIST_TENANT_OWNER : LIST_TENANT_OWNER_STATE;
    if (page->tenant)
        return is_any ? LIST_TENANT : LIST_TENANT_STATE;
    return is_any ? LIST : LIST_STATE;
}

int approval_store_list(struct approval_store *store, const struct approval_page *page, error *err)
{
    sqlite3_stmt *statement = database_begin(&store->database, (int) statement_of(page));
    (void) sqlite3_bind_int64(statement, 1, page->after ? page->after->asked_ms : -1);
    database_bind_text(statement, 2, page->after ? page->after->id : "");
    (void) sqlite3_bind_int64(statement, 3, (sqlite3_int64) page->max);
    (void) sqlite3_bind_int(statement, 4, (int) page->state);
    database_bind_text(statement, 5, page->tenant ? page->tenant : "");
    database_bind_text(statement, 6, page->asker ? page->asker : "");
    int result;
    while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
        struct approval approval;
        take_row(statement, &approval);
        page->each(page->context, &approval);
    }
    (void) sqlite3_reset(statement);
    return result == SQLITE_DONE ? 0 : database_failed(&store->database, "list approvals", err);
}

int approval_store_card(struct approval_store *store, const char *id, struct bytes *out, error *err)
{
    sqlite3_stmt *statement = database_begin(&store->database, CARD);
    database_bind_text(statement, 1, id);
    int result = sqlite3_step(statement);
    if (result == SQLITE_ROW && sqlite3_column_bytes(statement, 0) > 0)
        bytes_add(out, sqlite3_column_blob(statement, 0),
                  (size_t) sqlite3_column_bytes(statement, 0));
    (void) sqlite3_reset(statement);
    return result == SQLITE_ROW || result == SQLITE_DONE
               ? 0
               : database_failed(&store->database, "read an approval", err);
}

int approval_store_forget(struct approval_store *store, int64_t before_ms, error *err)
{
    sqlite3_stmt *statement = database_begin(&store->database, FORGET);
    (void) sqlite3_bind_int64(statement, 1, before_ms);
    return database_finish(&store->database, statement, "forget approvals", err) < 0 ? -1 : 0;
}
