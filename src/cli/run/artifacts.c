/* artifacts.c - see artifacts.h; beneath.h keeps paths beneath the folder. */
#include "cli/run/artifacts.h"

#include "base/cleanup.h"
#include "cli/common/beneath.h"
#include "supervisor/install_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

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

static int write_one(const struct out *out, size_t index, const char *path, error *err)
{
    struct beneath_file file;
    if (beneath_begin(&file, out->folder, path, 0644, err) < 0)
        return -1;
    int32_t code = glb_artifact_write(out->client, out->outcome, index, file.fd);
    if (code != GLB_OK)
        (void) fail(err, (enum error_code) code, "%s", glb_error_text());
    return beneath_end(&file, code == GLB_OK, err) < 0 || code != GLB_OK ? -1 : 0;
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
