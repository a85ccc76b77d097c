/* host_name.h - host names in canonical form, so that the name that was checked is the one that is
 * looked up. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { HOST_NAME_SIZE = 254 /* 253 characters, RFC 1035 section 2.3.4, and the end */ };

/* Writes the canonical form of `text`: ASCII letters in lower case, digits and hyphens in labels of
 * 1 to 63, none of them beginning or ending with a hyphen, at most 253 characters; removes one dot
 * at the end. Refuses (-1) everything else: NUL, percent, blanks, non-ASCII, empty labels. Also
 * names that resolvers may read as numbers: whose last label is all digits or begins with "0x"
 * (inet_aton(3), RFC 3696 section 2). */
int host_name_canonical(const char *text, size_t size, char ret_name[HOST_NAME_SIZE]);

/* True if inet_aton(3) or inet_pton(3) would read it as an address, in brackets or not. */
bool host_name_is_literal(const char *text, size_t size);

/* True if the canonical `name` is `host`; with `any_below`, if it is a subdomain of `host`. */
bool host_name_matches(const char *name, const char *host, bool any_below);
