/* request_guard.h - refuses requests of web pages to a daemon on this machine, and requests that a
 * proxy may have read differently. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* Names that the operator allows besides this machine: lists with commas. */
struct guard_names {
    char hosts[256];   /* that a proxy forwards */
    char origins[256]; /* whose pages may send requests */
};

/* Is the name in the list, which has commas? Case does not count. */
bool guard_lists(const char *list, const char *name, size_t length);

/* A web page may make a browser send requests here, under any name that the page's owner lets
 * resolve to this machine (DNS rebinding). So over TCP the Host must be this machine or a public
 * host, and an Origin must be this machine or an allowed origin. `names` may be NULL. Fails
 * ERR_FORBIDDEN  with what to do. */
int guard_origin(const char *host, const char *origin, bool is_remote,
                 const struct guard_names *names, error *err);

/* State of the headers so far. Zero-fill it. */
struct guard_headers {
    unsigned once; /* those that may stand once and have been seen, a bit each */
};

/* Checks one header after the other, unchanged. A server that is not sure where a request ends, or
 * for which host it is, must refuse it (RFC 9112, 3.2, 5.1 and 6.3): what a proxy took for a body
 * would be our next request. Fails  ERR_BAD_REQUEST  a malformed name, a duplicate, a length
 * together with chunks, chunks with another coding */
int guard_header(struct guard_headers *headers, const char *name, const char *value, error *err);

/* Checks the target, unchanged: no blanks and control characters (RFC 9112, 3.2). */
bool guard_target(const char *target);
