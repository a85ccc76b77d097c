/* request_guard.c - the names of this machine, and headers that must have one meaning. */
#include "doors/http/request_guard.h"

#include "base/table.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* "", ":7070" */
static bool is_port(const char *port)
{
    size_t digits = *port == ':' ? strspn(port + 1, "0123456789") : 0;
    return *port == '\0' || (digits > 0 && digits <= 5 && port[1 + digits] == '\0');
}

/* "localhost:7070", "127.0.0.1", "[::1]:7070" */
static bool is_local(const char *host)
{
    static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };
    for_each(name, names) {
        size_t length = strlen(*name);
        if (strncasecmp(host, *name, length) == 0 && is_port(host + length))
            return true;
    }
    return false;
}

bool guard_lists(const char *list, const char *name, size_t length)
{
    while (*(list += strspn(list, ", "))) {
        size_t size = strcspn(list, ", ");
        if (size == length && strncasecmp(list, name, length) == 0)
            return true;
        list += size;
    }
    return false;
}

static bool is_public(const struct guard_names *names, const char *host)
{
    size_t length = strcspn(host, ":");
    return names && is_port(host + length) && guard_lists(names->hosts, host, length);
}

int guard_origin(const char *host, const char *origin, bool is_remote,
                 const struct guard_names *names, error *err)
{
    static const char http[] = "http://";
    if (is_remote && (!host || (!is_local(host) && !is_public(names, host))))
        return fail(err, ERR_FORBIDDEN,
                    "Host '%.80s' is not this machine; use localhost or 127.0.0.1, or add it to "
                    "the setting public_hosts",
                    host ? host : "");
    if (!origin ||
        (strncmp(origin, http, sizeof http - 1) == 0 && is_local(origin + sizeof http - 1)) ||
        (names && guard_lists(names->origins, origin, strlen(origin))))
        return 0;
    return fail(err, ERR_FORBIDDEN,
                "pages of '%.80s' may not call glovebox; the setting allowed_origins names those "
                "that may",
                origin);
}

/* RFC 9110, 5.6.2 */
static bool is_token(const char *name)
{
    const char *at = name;
    while (isalnum((unsigned char) *at) || (*at && strchr("!#$%&'*+-.^_`|~", *at)))
        at++;
    return at > name && *at == '\0';
}

/* RFC 9110, 5.5: another reader might take it for a line end. */
static bool has_control(const char *value)
{
    for (const char *at = value; *at; at++)
        if (((unsigned char) *at < ' ' && *at != '\t') || *at == 0x7f)
            return true;
    return false;
}

bool guard_target(const char *target)
{
    const unsigned char *at = (const unsigned char *) target;
    while (*at > ' ' && *at != 0x7f)
        at++;
    return *at == '\0';
}

int guard_header(struct guard_headers *headers, const char *name, const char *value, error *err)
{
    enum { LENGTH, CODING };
    static const char *const once[] = { [LENGTH] = "Content-Length",
                                        [CODING] = "Transfer-Encoding",
                                        "Host",
                                        "Content-Type",
                                        "Origin",
                                        "Authorization",
                                        "X-API-Key",
                                        "Idempotency-Key" };
    if (!is_token(name))
        return fail(err, ERR_BAD_REQUEST, "'%.40s' is not a header name", name);
    if (value && has_control(value))
        return fail(err, ERR_BAD_REQUEST, "%.40s has a control character", name);
    for (unsigned i = 0; i <= CODING; i++) { /* libmicrohttpd adds a folded line to the name */
        size_t length = strlen(once[i]);
        if (strncasecmp(name, once[i], length) == 0 && name[length])
            return fail(err, ERR_BAD_REQUEST, "%s is folded over two lines", once[i]);
    }
    for (unsigned i = 0; i < COUNT_OF(once); i++) {
        if (strcasecmp(name, once[i]) != 0)
            continue;
        if (headers->once & 1U << i)
            return fail(err, ERR_BAD_REQUEST, "%s is twice in the header", once[i]);
        headers->once |= 1U << i;
        if (i == CODING && strcasecmp(value ? value : "", "chunked") != 0)
            return fail(err, ERR_BAD_REQUEST,
                        "Transfer-Encoding '%.40s' is not supported; send chunked, or plain with "
                        "its Content-Length",
                        value ? value : "");
    }
    if ((headers->once & 1U << LENGTH) && (headers->once & 1U << CODING))
        return fail(err, ERR_BAD_REQUEST,
                    "Content-Length and Transfer-Encoding exclude each other");
    return 0;
}
