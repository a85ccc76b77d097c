/* fake_addresses.h - the addresses of names in a sandbox. Each name that a channel looks up gets an
 * address of 198.18.0.0/15 (RFC 2544: not used on the internet) for the life of the channel; a
 * connection to that address is one to the name. One thread. */
#pragma once

#include "contract/egress.h"

#include <netinet/in.h>

enum { FAKE_ADDRESSES_MAX = 1024 };

struct fake_addresses {
    unsigned count, room;
    char (*list)[HOST_NAME_SIZE];
};

/* Gives the address of a canonical name. Returns -1 if there are too many names, or no memory. */
int fake_addresses_address(struct fake_addresses *names, const char *name,
                           struct in_addr *ret_address);

/* The name of an address, NULL if no name has it. */
const char *fake_addresses_find(const struct fake_addresses *names, const struct in6_addr *address);

void fake_addresses_free(struct fake_addresses *names);
