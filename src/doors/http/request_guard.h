/* request_guard.h - keeps web pages away from a daemon on this machine, and requests that a proxy
 * may have read in another way than we do. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* What an operator has named besides this machine: lists with commas. */
struct guard_names {
    char hosts[256];   /* that a proxy passes on */
    char origins[256]; /* whose pages may call */
};

/* Is it one of a list with commas? Without regard to case. */
bool guard_lists(const char *list, const char *name, size_t length);

/* A browser may send requests here for any page that it shows, under any name that the page's owner
 * lets point here (DNS rebinding). So over TCP the Host must be this machine or a public host, and
 * a request that names an Origin must come from this machine or an allowed origin. `names` may be
 * NULL. Fails  ERR_FORBIDDEN  with what to do. */
int guard_origin(const char *host, const char *origin, bool is_remote,
                 const struct guard_names *names, error *err);

/* What the headers so far have said. Zero-fill it. */
struct guard_headers {
    unsigned once; /* those that may stand once and have been seen, a bit each */
};

/* One header after the other, as they stand. A server in doubt where a request ends, or whom it
 * is for, must refuse it (RFC 9112, 3.2, 5.1 and 6.3): what a proxy took for a body would be our
 * next request. Fails  ERR_BAD_REQUEST  no name of a header, one that stands twice, a length beside
 * chunks, chunks that are coded once more */
int guard_header(struct guard_headers *headers, const char *name, const char *value, error *err);

/* What stands behind the method, as it came: no blanks and control characters (RFC 9112, 3.2). */
bool guard_target(const char *target);
