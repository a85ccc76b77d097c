/* host_files.h - the folder of `glovebox mcp --files`. Files are read and written beneath it only,
 * through no link, with the rights of the user of this process. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"

#include <json-c/json.h>
#include <stdbool.h>

enum { HOST_FILE_MAX = 16 << 20 };

struct host_files {
    int folder; /* -1: no --files was given */
    bool may_write;
};

/* `option` is DIR, DIR:ro or DIR:rw. */
int host_files_open(struct host_files *files, const char *option, error *err);

/* Appends the bytes of the file to `out`.
 * Fails  ERR_NOT_FOUND; ERR_TOO_LARGE; ERR_POLICY  not a regular file, has several names, lies
 * outside, or the path has a link */
int host_file_read(const struct host_files *files, const char *path, struct bytes *out, error *err);

/* Creates the file, or replaces it with `replaces`: completely or not at all.
 * Fails  as host_file_read(); ERR_CONFLICT  it exists; ERR_POLICY  a name begins with a dot */
struct host_write {
    const char *path;
    bool replaces;
    const void *bytes;
    size_t size;
};
int host_file_write(const struct host_files *files, const struct host_write *order, error *err);

/* --- in messages -----------------------------------------------------------------------------
 *
 * The daemon handles the calls of file_import and file_export and knows the sessions; only this
 * process knows the folder. So the file travels as a member of the message. */

/* If the message is a call of file_import, adds the bytes of the file that it names, or the reason
 * why they cannot be read. Returns whether it has changed the message. */
bool host_files_import(const struct host_files *files, json_object *message);
/* Is the message a call of file_export, whose result carries a file? */
bool host_files_exports(const struct host_files *files, json_object *message);
/* Removes the file from a result and writes it where `arguments` say; a failure replaces the
 * result. Returns whether it has changed the message. */
bool host_files_export(const struct host_files *files, json_object *arguments,
                       json_object *message);
