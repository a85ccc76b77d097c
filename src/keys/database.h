/* database.h - an SQLite file, and the fixed list of statements that are run on it. */
#pragma once

#include "base/error.h"

#include <sqlite3.h>
#include <stddef.h>

struct database_plan {
    const char *folder; /* NULL: in memory */
    const char *name;   /* of the file there; made with mode 0600 */
    int busy_ms;        /* how long to wait for another writer */
    const char *schema; /* pragmas and tables; run at each opening */
    int count;          /* of statements */
    const char *const *texts;
};

struct database {
    sqlite3 *file;
    int count;
    sqlite3_stmt **statements; /* an array of the caller, for as many as the plan has */
};

/* Opens or makes the file, and prepares every statement. Fails  ERR_SYSTEM, ERR_BAD_REQUEST; call
 * database_close() also then. */
int database_open(const struct database_plan *plan, struct database *database, error *err);
void database_close(struct database *database);

/* Resets a statement, and clears its parameters. */
sqlite3_stmt *database_begin(const struct database *database, int which);

/* Fails with SQLite's message for the last error. */
int database_failed(const struct database *database, const char *what, error *err);

/* Runs a statement without result rows. Returns how many rows it changed. */
int database_finish(const struct database *database, sqlite3_stmt *statement, const char *what,
                    error *err);

/* The text is copied. */
void database_bind_text(sqlite3_stmt *statement, int at, const char *text);
/* Copies a text of the current row; "" for NULL. */
void database_take_text(sqlite3_stmt *statement, int column, char *text, size_t size);
