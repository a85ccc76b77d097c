/* artifacts.c - openat2() does the guarding: RESOLVE_BENEATH and no links, for every part of a
 * path. */
#include "cli/run/artifacts.h"

#include "base/cleanup.h"
#include "supervisor/install_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { PART_MAX = 255 };

static int open_beneath(int folder, const char *name, int flags, unsigned mode)
{
    struct open_how how = {
        .flags = (uint64_t) (flags | O_CLOEXEC),
        .mode = mode,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    return (int) syscall(SYS_openat2, folder, name, &how, sizeof how);
}

static int fail_out(error *err, const char *path, int number)
{
    return fail(err, ERR_BAD_REQUEST, "--out: cannot write to '%s': %s; choose another folder",
                path, strerrordesc_np(number));
}

int out_open(const char *path, int *ret_folder, error *err)
{
    if (make_folder(path, 0755, err) < 0)
        return fail_out(err, path, err->os);
    auto_fd folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return fail_out(err, path, errno);
    if (faccessat(folder, ".", W_OK | X_OK, AT_EACCESS) < 0)
        return fail_out(err, path, errno);
    *ret_folder = take_fd(&folder);
    return 0;
}

/* Opens the folder that a path names, making what is missing. Leaves the last part in `path`. */
static int open_parents(int folder, const char **path, int *ret_folder, error *err)
{
    auto_fd here = fcntl(folder, F_DUPFD_CLOEXEC, 3);
    if (here < 0)
        return fail_os(err, "open the folder");
    for (const char *slash = strchr(*path, '/'); slash; slash = strchr(*path, '/')) {
        char part[PART_MAX + 1];
        int length = snprintf(part, sizeof part, "%.*s", (int) (slash - *path), *path);
        if (length <= 0 || length > PART_MAX || strcmp(part, ".") == 0 || strcmp(part, "..") == 0)
            return fail(err, ERR_PROTOCOL, "its path is not one");
        if (mkdirat(here, part, 0755) < 0 && errno != EEXIST)
            return fail_os(err, "make folder '%s'", part);
        int next = open_beneath(here, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
        if (next < 0)
            return fail_os(err, "open folder '%s'", part);
        close_fd(&here);
        here = next;
        *path = slash + 1;
    }
    *ret_folder = take_fd(&here);
    return 0;
}

static int write_one(const struct out *out, size_t index, const char *path, error *err)
{
    auto_fd folder = -1;
    const char *name = path;
    if (open_parents(out->folder, &name, &folder, err) < 0)
        return -1;
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strlen(name) > PART_MAX)
        return fail(err, ERR_PROTOCOL, "its path is not one");

    /* Readers never see half a file, and a link that lies there is replaced, not followed. */
    char temporary[64];
    (void) snprintf(temporary, sizeof temporary, ".glovebox-%d-%zu", (int) getpid(), index);
    (void) unlinkat(folder, temporary, 0);
    auto_fd file = open_beneath(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
    if (file < 0)
        return fail_os(err, "make a file");
    int result = 0;
    int32_t code = glb_artifact_write(out->client, out->outcome, index, file);
    if (code != GLB_OK)
        result = fail(err, (enum error_code) code, "%s", glb_error_text());
    else if (renameat(folder, temporary, folder, name) < 0)
        result = fail_os(err, "give it its name");
    if (result < 0)
        (void) unlinkat(folder, temporary, 0);
    return result;
}

int out_write(const struct out *out, size_t *ret_written, error *err)
{
    glb_artifact artifact;
    int result = 0;
    *ret_written = 0;
    for (size_t index = 0;
         glb_outcome_artifact(out->outcome, index, &artifact, sizeof artifact) == GLB_OK; index++) {
        error failure = { 0 };
        if (write_one(out, index, artifact.path, &failure) == 0) {
            (*ret_written)++;
            continue;
        }
        if (result == 0) {
            *err = failure;
            (void) under(err, "cannot save '%.80s'", artifact.path);
        }
        result = -1;
    }
    return result;
}
