/* agent_error.c - translates an errno of init into an error for a client. */
#include "engine/sandbox/agent_error.h"

#include "base/table.h"
#include "base/utf8.h"

#include <errno.h>
#include <string.h>

int error_of_agent(const struct agent_frame *frame, const unsigned char *payload, error *err)
{
    static const struct {
        int os;
        enum error_code code;
    } rows[] = {
        { ENOENT, ERR_NOT_FOUND },
        { EEXIST, ERR_CONFLICT },
        { ENOTEMPTY, ERR_CONFLICT },
        { ENOTDIR, ERR_BAD_REQUEST },
        { EISDIR, ERR_BAD_REQUEST },
        { EINVAL, ERR_BAD_REQUEST },
        { ELOOP, ERR_BAD_REQUEST },
        { ENAMETOOLONG, ERR_BAD_REQUEST },
        { EXDEV, ERR_BAD_REQUEST },
        { EACCES, ERR_POLICY },
        { EPERM, ERR_POLICY },
        { EROFS, ERR_POLICY },
        { EBUSY, ERR_POLICY },
        { ENOSPC, ERR_FULL },
        { EDQUOT, ERR_FULL },
        { EFBIG, ERR_FULL },
        { EAGAIN, ERR_BUSY },
        { EMFILE, ERR_BUSY },
        { ECONNREFUSED, ERR_UNREACHED },
        { ENETUNREACH, ERR_POLICY },
        { ECONNRESET, ERR_UNREACHED },
        { ESRCH, ERR_NOT_FOUND },
    };
    struct agent_done done;
    memcpy(&done, payload, sizeof done);
    if (done.os == 0)
        return 0;
    enum error_code code = ERR_SYSTEM;
    for_each(row, rows)
        if (row->os == done.os)
            code = row->code;
    size_t size = utf8_valid_size(payload + sizeof done, frame->size - sizeof done);
    (void) fail(err, code, "%.*s%s", (int) size, (const char *) payload + sizeof done,
                done.os == EROFS ? "; /workspace and /tmp can be written" : "");
    err->os = done.os;
    return -1;
}
