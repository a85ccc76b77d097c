/* archive.h - a template as one file: a compressed tar archive of `manifest.json` and `root/`, as
 * GNU tar writes it. The digest in the manifest is over every path, kind, mode, link and content.
 */
#pragma once

#include "base/error.h"

#include <json-c/json.h>
#include <sys/types.h>

/* What an archive may hold. */
enum { ARCHIVE_ENTRIES_MAX = 500000, ARCHIVE_GIB_MAX = 16, ARCHIVE_MANIFEST_MAX = 1 << 20 };

/* Writes a template to `path`, compressed as its ending says (.tar.gz, .tar.zst, .tar.xz; .tar:
 * not). The same template gives the same bytes. What was at `path` is replaced when all is written.
 * Fails  ERR_BAD_REQUEST  another ending
 *        ERR_CONFLICT     the template is not what its digest says
 *        ERR_NOT_FOUND    no such template */
int template_export(const char *state, const char *name, const char *path, error *err);

/* Makes the template in the file that is open as `file`, under the name that its manifest says, in
 * place of the one that has this name. tar reads the archive behind the walls of a build.
 * Gives  *ret_manifest, which the caller puts back.
 * Fails  ERR_BAD_REQUEST  it holds what no template may, or not what its digest says
 *        ERR_UNAVAILABLE  tar, the program that decompresses or room is missing */
int template_import(const char *state, int file, struct json_object **ret_manifest, error *err);

/* How a file is compressed: by its ending, or by its first bytes. */
struct compression {
    const char *ending, *option, *program; /* the option of tar */
    const char *magic;
    off_t magic_at;
};
enum { COMPRESSIONS = 4, MAGIC_SIZE = 6 };
extern const struct compression compressions[COMPRESSIONS];

/* tar(1) as archives need it: in the C locale, found where root's programs are. */
extern char *const archive_variables[];
