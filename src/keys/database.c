/* database.c - see database.h. */
#include "keys/database.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* SQLite makes paths absolute and resolves links. Here the path must stay unchanged: it leads
 * through a descriptor or ".", since the daemon's user may not enter the folders above. */
static int name_as_it_is(sqlite3_vfs *files, const char *name, int size, char *ret_name)
{
    (void) files;
    return snprintf(ret_name, (size_t) size, "%s", name) < size ? SQLITE_OK : SQLITE_CANTOPEN;
}

static const char *files_as_named(void)
{
    static sqlite3_vfs files;
    if (!files.zName) {
        files = *sqlite3_vfs_find(NULL);
        files.zName = "glovebox";
        files.pNext = NULL;
        files.xFullPathname = name_as_it_is;
        (void) sqlite3_vfs_register(&files, 0);
    }
    return files.zName;
}

int database_failed(const struct database *database, const char *what, error *err)
{
    int is_full = database->file && sqlite3_errcode(database->file) == SQLITE_FULL;
    return fail(err, ERR_SYSTEM, "%s: %s%s", what,
                database->file ? sqlite3_errmsg(database->file) : "no memory",
                is_full ? "; make room on the disk of the state folder" : "");
}

/* Before SQLite locks the file: any close(2) of it in this process ends such locks (fcntl(2)). */
static int make_file(const char *path, error *err)
{
    int made = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (made < 0)
        return fail_os(err, "open '%s'", path);
    (void) close(made);
    return 0;
}

int database_open(const struct database_plan *plan, struct database *database, error *err)
{
    char path[PATH_MAX] = ":memory:";
    database->count = plan->count;
    if (plan->folder &&
        snprintf(path, sizeof path, "%s/%s", plan->folder, plan->name) >= (int) sizeof path)
        return fail(err, ERR_BAD_REQUEST, "the path '%.80s…' is too long", plan->folder);
    if (plan->folder && make_file(path, err) < 0)
        return -1;
    if (sqlite3_open_v2(path, &database->file, SQLITE_OPEN_READWRITE,
                        plan->folder ? files_as_named() : NULL) != SQLITE_OK ||
        sqlite3_busy_timeout(database->file, plan->busy_ms) != SQLITE_OK ||
        sqlite3_exec(database->file, plan->schema, NULL, NULL, NULL) != SQLITE_OK)
        return database_failed(database, path, err);
    for (int i = 0; i < plan->count; i++)
        if (sqlite3_prepare_v3(database->file, plan->texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &database->statements[i], NULL) != SQLITE_OK)
            return database_failed(database, path, err);
    return 0;
}

void database_close(struct database *database)
{
    for (int i = 0; i < database->count; i++)
        (void) sqlite3_finalize(database->statements[i]);
    (void) sqlite3_close(database->file);
    database->file = NULL;
    database->count = 0;
}

sqlite3_stmt *database_begin(const struct database *database, int which)
{
    sqlite3_stmt *statement = database->statements[which];
    (void) sqlite3_reset(statement);
    (void) sqlite3_clear_bindings(statement);
    return statement;
}

int database_finish(const struct database *database, sqlite3_stmt *statement, const char *what,
                    error *err)
{
    int result = sqlite3_step(statement);
    (void) sqlite3_reset(statement);
    return result == SQLITE_DONE ? sqlite3_changes(database->file)
                                 : database_failed(database, what, err);
}

void database_bind_text(sqlite3_stmt *statement, int at, const char *text)
{
    (void) sqlite3_bind_text(statement, at, text, -1, SQLITE_TRANSIENT);
}

void database_take_text(sqlite3_stmt *statement, int column, char *text, size_t size)
{
    const unsigned char *value = sqlite3_column_text(statement, column);
    (void) snprintf(text, size, "%s", value ? (const char *) value : "");
}
