/* fake_addresses.h - the addresses that a sandbox is told names have. Each name that a channel
 * looks up gets one of 198.18.0.0/15 (RFC 2544: never on the internet) for as long as the channel
 * lives; a connection to it is a connection to the name. One thread. */
#pragma once

#include "contract/egress.h"

#include <netinet/in.h>

enum { GIVEN_NAMES_MOST = 1024 };

struct given_names {
    unsigned count, room;
    char (*list)[HOST_NAME_SIZE];
};

/* The address of a canonical name. Returns -1 if there are too many names already, or no memory. */
int given_names_address(struct given_names *names, const char *name, struct in_addr *ret_address);

/* The name behind an address, NULL if it was given to none. */
const char *given_names_find(const struct given_names *names, const struct in6_addr *address);

void given_names_free(struct given_names *names);
