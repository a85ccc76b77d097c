/* upstreams.h - requests to endpoints: libcurl on the event loop, certificates, rates. One thread.
 */
#pragma once

#include "egress/secrets.h"

#include <netinet/in.h>
#include <uv.h>

struct upstreams;
struct exchange;

enum {
    EXCHANGES_MAX = 256,               /* at once, of all channels */
    EXCHANGES_FEW = 4,                 /* a channel with fewer may use any that is free */
    EXCHANGES_MANY = EXCHANGES_MAX / 2 /* with more in use, only channels with few get one */
};

/* Call it before confine_outside(), since it reads files. `ca_file` is an open file of certificates
 * (PEM), -1 for those that this host trusts. `secrets` may be NULL.
 * Fails  ERR_UNAVAILABLE  no certificate could be read. */
int upstreams_open(uv_loop_t *loop, const struct secrets *secrets, int ca_file,
                   struct upstreams **ret_upstreams, error *err);

/* Where a request goes. The addresses have been checked; it connects to no other. */
struct exchange_order {
    const struct egress_endpoint *endpoint;
    const struct in6_addr *addresses;
    unsigned address_count;
    unsigned *of_channel; /* the channel's count of exchanges, updated here; outlives them */
};

/* Begins an exchange. The caller writes one request to *ret_socket, as http_head_write() does, and
 * reads the answer from it, without any secret. Gives *ret_socket, which the caller closes, and
 * *ret_exchange, ended by exchange_drop(). Returns EGRESS_ALLOWED, or the reason of a failure. */
enum egress_reason exchange_begin(struct upstreams *upstreams, const struct exchange_order *order,
                                  int *ret_socket, struct exchange **ret_exchange);

/* The reason of its failure; EGRESS_ALLOWED if it has not failed. */
enum egress_reason exchange_failure(const struct exchange *exchange);
uint64_t exchange_scrubbed(const struct exchange *exchange);

/* Gives the address that it is connected to; leaves ret_address unchanged while there is none. */
void exchange_address(const struct exchange *exchange, uint8_t ret_address[16]);
void exchange_drop(struct exchange *exchange); /* NULL: nothing */
