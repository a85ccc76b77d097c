/* http_transfers.h - HTTP by libcurl on the event loop: to addresses that were looked up and
 * checked before, with certificates that were read at the start. One thread. */
#pragma once

#include "base/error.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <uv.h>

struct transfers;

/* A transfer is over; the handle is still the caller's. */
typedef void transfer_ended(void *context, CURLcode result);

/* Call it before confine_outside(), since it reads files. `ca_file` is an open file of certificates
 * (PEM), -1 for those that this host trusts.
 * Fails  ERR_BAD_REQUEST  it holds no certificate; ERR_SYSTEM */
int transfers_open(uv_loop_t *loop, int ca_file, transfer_ended *ended,
                   struct transfers **ret_transfers, error *err);

/* Where a transfer goes: it asks no resolver, and connects to no other address. */
struct transfer_place {
    const char *host;
    uint16_t port;
    const struct in6_addr *addresses; /* borrowed until the transfer is freed */
    unsigned address_count;
};

/* Makes a handle for HTTP/1.1 to that place only: TLS checked, no proxy, no redirect followed.
 * `context` is passed to the callback at its end. Gives *ret_resolved, which the caller frees after
 * the handle. NULL: no memory. */
CURL *transfer_new(struct transfers *transfers, const struct transfer_place *place, void *context,
                   struct curl_slist **ret_resolved);

/* Returns -1 if it cannot begin. */
int transfer_begin(struct transfers *transfers, CURL *easy);
void transfer_free(struct transfers *transfers, CURL *easy); /* NULL: nothing */
