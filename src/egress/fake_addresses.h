/* fake_addresses.h - the addresses that names resolve to in a sandbox. Each name that a channel
 * looks up gets one of 198.18.0.0/15 (RFC 2544: never on the internet) for as long as the channel
 * lives; a connection to it is a connection to the name. One thread. */
#pragma once

#include "contract/egress.h"

#include <netinet/in.h>

enum { FAKE_ADDRESSES_MAX = 1024 };

struct fake_addresses {
    unsigned count, room;
    char (*list)[HOST_NAME_SIZE];
};

/* The address of a canonical name. Returns -1 if there are too many names already, or no memory. */
int fake_addresses_address(struct fake_addresses *names, const char *name,
                           struct in_addr *ret_address);

/* The name behind an address, NULL if it was given to none. */
const char *fake_addresses_find(const struct fake_addresses *names, const struct in6_addr *address);

void fake_addresses_free(struct fake_addresses *names);
