/* upstreams.h - requests to endpoints: libcurl on the loop, which certificates are trusted, and how
 * often each endpoint may be asked. One thread. */
#pragma once

#include "egress/secrets.h"

#include <netinet/in.h>
#include <uv.h>

struct upstreams;
struct exchange;

enum {
    EXCHANGES_MAX = 256,               /* at once, of all channels */
    EXCHANGES_FEW = 4,                 /* of one channel: it has room while there is any */
    EXCHANGES_MANY = EXCHANGES_MAX / 2 /* beyond a few, a channel leaves the rest to others */
};

/* Before the program confines itself: what is read of files is read here. `ca_file` is an open file
 * of certificates (PEM), -1 for those that this host trusts. `secrets` may be NULL.
 * Fails  ERR_UNAVAILABLE  no certificate could be read. */
int upstreams_open(uv_loop_t *loop, const struct secrets *secrets, int ca_file,
                   struct upstreams **ret_upstreams, error *err);

/* Where a request goes: the addresses have been checked, and no other is connected to. */
struct exchange_order {
    const struct egress_endpoint *endpoint;
    const struct in6_addr *addresses;
    unsigned address_count;
    unsigned *of_channel; /* exchanges that its sandbox has; counted here, and outlives them */
};

/* Begins an exchange: one request, as http_head_write() writes it, is read from *ret_socket's other
 * end, and the answer written to it, without any secret. Gives *ret_socket, which the caller
 * closes, and *ret_exchange, ended by exchange_drop(). Returns EGRESS_ALLOWED, or why not. */
enum egress_reason exchange_begin(struct upstreams *upstreams, const struct exchange_order *order,
                                  int *ret_socket, struct exchange **ret_exchange);

/* Why it has failed, EGRESS_ALLOWED while it has not. Before its first byte nothing is written. */
enum egress_reason exchange_failure(const struct exchange *exchange);
uint64_t exchange_scrubbed(const struct exchange *exchange);

/* Gives the address that it is connected to; nothing while there is none. */
void exchange_address(const struct exchange *exchange, uint8_t ret_address[16]);
void exchange_drop(struct exchange *exchange); /* NULL: nothing */
