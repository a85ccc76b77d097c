/* session_ends.c - why a session has ended: the names in answers, log and tombstones. */
#include "engine/session/session_registry.h"

#include <string.h>

static const struct {
    const char *name, *kept;
} ends[SESSION_ENDS] = {
    /* clang-format off */
    [END_NONE]    = { "",         "" },
    [END_DELETED] = { "deleted",  "nothing: variables, files and processes went with the session" },
    [END_IDLE]    = { "idle",     "nothing: variables, files and processes went with the session" },
    [END_AGE]     = { "expired",  "nothing: variables, files and processes went with the session" },
    [END_LOST]    = { "lost",     "nothing: the sandbox broke" },
    [END_FAILED]  = { "failed",   "nothing: it never ran" },
    [END_STOPPED] = { "stopped",  "nothing: sessions end with the glovebox that serves them" },
    [END_DAEMON]  = { "daemon",   "nothing: sessions end with the glovebox that serves them" },
    /* clang-format on */
};

const char *session_end_name(enum session_end end)
{
    return ends[end].name;
}

enum session_end session_end_of(const char *name)
{
    for (enum session_end end = END_DELETED; end < SESSION_ENDS; end++)
        if (strcmp(ends[end].name, name) == 0)
            return end;
    return END_DAEMON;
}

const char *session_end_kept(enum session_end end)
{
    return ends[end].kept;
}
