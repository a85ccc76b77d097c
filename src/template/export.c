/* export.c - writes a template to one file, always with the same bytes. */
#include "template/archive.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "template/store.h"
#include "template/tool.h"
#include "template/verify.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* As finalise.c: no file is newer than 2025-01-01. */
#define NEWEST "--mtime=@1735689600"

const struct compression compressions[COMPRESSIONS] = {
    { ".tar.gz", "--gzip", "gzip", "\x1f\x8b", 0 },
    { ".tar.zst", "--zstd", "zstd", "\x28\xb5\x2f\xfd", 0 },
    { ".tar.xz", "--xz", "xz",
      "\xfd"
      "7zXZ",
      0 },
    { ".tar", "--no-seek", "tar", "ustar", 257 }, /* not compressed */
};

char *const archive_variables[] = {
    (char[]){ "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin" },
    (char[]){ "LC_ALL=C" },
    (char[]){ "TZ=UTC" },
    NULL,
};

static const struct compression *compression_of(const char *path, error *err)
{
    size_t length = strlen(path);
    for_each(one, compressions)
        if (length > strlen(one->ending) &&
            strcmp(path + length - strlen(one->ending), one->ending) == 0)
            return one;
    (void) fail(
        err, ERR_BAD_REQUEST,
        "'%.200s' must end in .tar.gz, .tar.zst, .tar.xz or .tar, which says how it is compressed",
        path);
    return NULL;
}

/* If files were changed on the disk, every import would refuse the archive. */
static int check_digest(struct json_object *manifest, int place, error *err)
{
    struct measured_template found;
    if (template_measure(place, manifest, &found, err) < 0)
        return -1;
    return found.is_same ? 0
                         : fail(err, ERR_CONFLICT,
                                "its files are not those that were built (%.19s…); build it again",
                                found.measured);
}

static int write_archive(const char *folder, const struct compression *compression, int output,
                         error *err)
{
    const char *const arguments[] = {
        /* clang-format off */
        "/bin/tar", "--create", compression->option, "--format=gnu", "--sort=name", "--owner=0", "--group=0",
        "--numeric-owner", "--hard-dereference", "--directory", folder, "--file=-", "--clamp-mtime", NEWEST,
        "manifest.json", "root", NULL
        /* clang-format on */
    };
    struct tool tool = {
        .arguments = (char *const *) (uintptr_t) arguments, /* execvp(3) does not write */
        .variables = archive_variables,
        .output = output,
    };
    if (access("/bin/tar", X_OK) < 0 || !tool_exists(compression->program))
        return fail(err, ERR_UNAVAILABLE, "this machine has no tar or no %s; install them",
                    compression->program);
    if (tool_run(&tool, err) == 0)
        return fsync(output) < 0 ? fail_os(err, "write the archive") : 0;
    return tool_interrupted || !*tool.tail
               ? -1
               : fail(err, ERR_UNAVAILABLE, "%.*s", (int) strcspn(tool.tail, "\n"), tool.tail);
}

static int write_file(const char *folder, const char *path, const struct compression *compression,
                      error *err)
{
    char partial[PATH_MAX];
    if (snprintf(partial, sizeof partial, "%s.%d.partial", path, getpid()) >= (int) sizeof partial)
        return fail(err, ERR_BAD_REQUEST, "path '%.100s…' is too long", path);
    auto_fd output = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (output < 0)
        return fail_os(err, "write '%.200s'", partial);
    int result = write_archive(folder, compression, output, err);
    if (result == 0 && rename(partial, path) < 0)
        result = fail_os(err, "write '%.200s'", path);
    if (result < 0)
        (void) unlink(partial);
    return result;
}

int template_export(const char *state, const char *name, const char *path, error *err)
{
    char folder[PATH_MAX];
    auto_json manifest = NULL;
    const struct compression *compression = compression_of(path, err);
    if (!compression)
        return -1;
    auto_fd store = store_open(state, false, err);
    if (store < 0 || store_manifest(store, name, &manifest, err) < 0)
        return -1;
    /* While this is locked, a new build does not remove these files (store.h). */
    auto_fd place = openat(store, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = 0;
    if (place < 0 || flock(place, LOCK_SH | LOCK_NB) < 0)
        result = fail_os(err, "hold the template");
    (void) snprintf(folder, sizeof folder, "/proc/%d/fd/%d", getpid(), place);
    if (result == 0)
        result = check_digest(manifest, place, err);
    if (result == 0)
        result = write_file(folder, path, compression, err);
    return result < 0 ? under(err, "export template %s", name) : 0;
}
