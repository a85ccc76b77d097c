/* guard.c - names of this machine, and nothing else. */
#include "daemon/rest/guard.h"

#include "base/table.h"

#include <string.h>
#include <strings.h>

/* "localhost:7070", "127.0.0.1", "[::1]:7070" */
static bool is_local(const char *host)
{
    static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };
    for_each(name, names) {
        size_t length = strlen(*name);
        if (strncasecmp(host, *name, length) != 0)
            continue;
        const char *port = host + length;
        if (*port == '\0')
            return true;
        size_t digits = *port == ':' ? strspn(port + 1, "0123456789") : 0;
        return digits > 0 && digits <= 5 && port[1 + digits] == '\0';
    }
    return false;
}

int guard_origin(const char *host, const char *origin, bool is_remote, error *err)
{
    if (is_remote && (!host || !is_local(host)))
        return fail(err, ERR_FORBIDDEN,
                    "Host '%.80s' is not this machine; call it localhost or 127.0.0.1",
                    host ? host : "");
    if (!origin)
        return 0;
    static const char http[] = "http://";
    if (strncmp(origin, http, sizeof http - 1) != 0 || !is_local(origin + sizeof http - 1))
        return fail(err, ERR_FORBIDDEN, "pages of '%.80s' may not call glovebox", origin);
    return 0;
}
