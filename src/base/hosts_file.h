/* hosts_file.h - the addresses that an operator has stated for the host of an endpoint: by writing
 * a number or localhost, or a line in /etc/hosts. Names of requests and DNS are not looked up here.
 */
#pragma once

#include <netinet/in.h>

/* The text of /etc/hosts, "" if it cannot be read; the caller frees it. NULL: no memory. */
char *hosts_file_read(void);

/* Gives at most `max` addresses, IPv4 mapped, of `host` as endpoint_host_canonical() writes it: the
 * number that it is, 127.0.0.1 and ::1 for localhost, else those in `hosts`. Returns how many. */
unsigned hosts_file_addresses(const char *hosts, const char *host, struct in6_addr *ret_addresses,
                              unsigned max);
