/* hosts_file.h - addresses that the operator has set for the host of an endpoint: as an IP address,
 * localhost, or a line of /etc/hosts. Not used for names in requests of sandboxes, or for DNS. */
#pragma once

#include <netinet/in.h>

/* The text of /etc/hosts, "" if it cannot be read; the caller frees it. NULL: no memory. */
char *hosts_file_read(void);

/* Gives at most `max` addresses (IPv4 mapped) of `host`, as endpoint_host_canonical() writes it:
 * the address itself, 127.0.0.1 and ::1 for localhost, else those in `hosts`. Returns how many. */
unsigned hosts_file_addresses(const char *hosts, const char *host, struct in6_addr *ret_addresses,
                              unsigned max);
