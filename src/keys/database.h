/* database.h - an SQLite file of one owner, and the list of statements that are ever asked of it.
 */
#pragma once

#include "base/error.h"

#include <sqlite3.h>

struct database_plan {
    const char *folder; /* NULL: in memory */
    const char *name;   /* of the file there; made with mode 0600 */
    int busy_ms;        /* that another writer is waited for */
    const char *schema; /* pragmas and tables; run at each opening */
    int count;          /* of statements */
    const char *const *texts;
};

struct database {
    sqlite3 *file;
    int count;
    sqlite3_stmt **statements; /* the caller's room for as many as the plan has */
};

/* Opens, makes what is missing, and prepares every statement. Fails  ERR_SYSTEM, ERR_BAD_REQUEST;
 * database_close() takes what is half open. */
int database_open(const struct database_plan *plan, struct database *database, error *err);
void database_close(struct database *database);

/* A statement without its last values. */
sqlite3_stmt *database_begin(const struct database *database, int which);

/* Fails with SQLite's words for what just went wrong. */
int database_failed(const struct database *database, const char *what, error *err);

/* Runs one that gives no rows. Returns how many rows it changed. */
int database_finish(const struct database *database, sqlite3_stmt *statement, const char *what,
                    error *err);
