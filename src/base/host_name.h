/* host_name.h - host names in one canonical form, so that what was checked is what is looked up and
 * connected to. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { HOST_NAME_SIZE = 254 /* 253 characters, RFC 1035 section 2.3.4, and the end */ };

/* Writes the canonical form of `text`: ASCII letters in lower case, digits and hyphens in labels of
 * 1 to 63, none of them beginning or ending with a hyphen, at most 253 characters, one dot at the
 * end taken away. Everything else is refused (-1): NUL, percent, blanks, non-ASCII, empty labels.
 * So are names that resolvers may take for numbers: whose last label is all digits or begins with
 * "0x" (inet_aton(3), RFC 3696 section 2). */
int host_name_canonical(const char *text, size_t size, char ret_name[HOST_NAME_SIZE]);

/* True for what inet_aton(3) or inet_pton(3) would take for an address, in brackets or not. */
bool host_name_is_literal(const char *text, size_t size);

/* True if the canonical `name` is `host`, or with EGRESS_ANY_BELOW lies any number of labels below
 * it. */
bool host_name_matches(const char *name, const char *host, bool any_below);
