/* archive.h - a template as one file: a compressed archive of GNU tar with `manifest.json` and
 * `root/`. The digest in the manifest is over every path, kind, mode, link and content. */
#pragma once

#include "base/error.h"

#include <json-c/json.h>
#include <sys/types.h>

/* Limits of an archive. */
enum { ARCHIVE_ENTRIES_MAX = 500000, ARCHIVE_GIB_MAX = 16, ARCHIVE_MANIFEST_MAX = 1 << 20 };

/* Writes a template to `path`, compressed according to its ending (.tar.gz, .tar.zst, .tar.xz;
 * .tar: not compressed). The same template gives the same bytes. An old file is replaced at the
 * end. Fails  ERR_BAD_REQUEST  another ending ERR_CONFLICT     the template does not have its
 * digest ERR_NOT_FOUND    no such template */
int template_export(const char *state, const char *name, const char *path, error *err);

/* Makes the template in the archive that is open as `file`. It gets the name in its manifest, and
 * replaces a template of that name. tar reads the archive behind the walls of a build.
 * Gives  *ret_manifest, which the caller puts.
 * Fails  ERR_BAD_REQUEST  it has entries that are not allowed, or another digest than stated
 *        ERR_UNAVAILABLE  tar, the program that decompresses or space is missing */
int template_import(const char *state, int file, struct json_object **ret_manifest, error *err);

/* How a file is compressed, by its ending or by its first bytes. */
struct compression {
    const char *ending, *option, *program; /* the option of tar */
    const char *magic;
    off_t magic_at;
};
enum { COMPRESSIONS = 4, MAGIC_SIZE = 6 };
extern const struct compression compressions[COMPRESSIONS];

/* The environment of tar(1): the C locale, and root's PATH. */
extern char *const archive_variables[];
