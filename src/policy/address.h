/* address.h - which addresses are public, and which are private or special. IPv4 is held mapped
 * (::ffff:a.b.c.d), as the kernel shows it on a socket of both kinds. Pure functions; any thread.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>

/* True for every address that is not one host on the public internet: private, loopback, link-local
 * (the metadata services of clouds among them), shared, documentation, benchmark, multicast,
 * reserved, and IPv6 forms that carry an IPv4 address within (RFC 6890 and the IANA special-purpose
 * registries). */
bool address_is_special(const struct in6_addr *address);

/* True for what never leaves this machine: 127.0.0.0/8 and ::1. */
bool address_is_loopback(const struct in6_addr *address);

bool address_is_within(const struct in6_addr *address, const unsigned char network[16],
                       unsigned prefix);

void address_map(const struct in_addr *from, struct in6_addr *ret_mapped);

/* Reads "10.0.0.0/8" or "2001:db8::/32" of a policy; an address alone is a network of one. Only the
 * spellings of inet_pton(3); host bits must be zero. Returns -1 if it is invalid. */
int network_read(const char *text, unsigned char ret_network[16], unsigned *ret_prefix);

enum { ADDRESS_TEXT = 46 };
void address_write(const struct in6_addr *address, char ret_text[ADDRESS_TEXT]);
