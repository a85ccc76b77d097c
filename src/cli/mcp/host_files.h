/* host_files.h - the folder of `glovebox mcp --files`: what is read and written beneath it, through
 * no link, as the user that this process is. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"

#include <json-c/json.h>
#include <stdbool.h>

enum { HOST_FILE_MAX = 16 << 20 };

struct host_files {
    int folder; /* -1: none was given */
    bool may_write;
};

/* DIR, DIR:ro or DIR:rw. */
int host_files_open(struct host_files *files, const char *option, error *err);

/* Adds a file's bytes. Fails  ERR_NOT_FOUND; ERR_POLICY  for what is no regular file with one name,
 * or is reached by a link or outside; ERR_TOO_LARGE */
int host_file_read(const struct host_files *files, const char *path, struct bytes *out, error *err);

/* Makes the file, or with `replaces` puts it in the place of one: whole or not at all.
 * Fails  as reading, and ERR_CONFLICT  it exists; ERR_POLICY  a name that begins with a dot. */
struct host_write {
    const char *path;
    bool replaces;
    const void *bytes;
    size_t size;
};
int host_file_write(const struct host_files *files, const struct host_write *order, error *err);

/* --- in messages -----------------------------------------------------------------------------
 *
 * The daemon reads the arguments of file_import and file_export, and knows sessions; this process
 * alone knows the folder. So a file travels as a member of the message that passes through here. */

/* Puts the bytes of the file that a call of file_import names into the message, or why they cannot
 * be read. Gives  whether the message has changed. */
bool host_files_import(const struct host_files *files, json_object *message);
/* Is it a call whose result brings a file? */
bool host_files_exports(const struct host_files *files, json_object *message);
/* Takes the file out of a result and writes it as `arguments` say; a failure becomes the result.
 * Gives  whether the message has changed. */
bool host_files_export(const struct host_files *files, json_object *arguments,
                       json_object *message);
