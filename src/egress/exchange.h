/* exchange.h - between upstreams.c and exchange.c: libcurl's handles and who hears of them. */
#pragma once

#include "egress/upstreams.h"

#include <curl/curl.h>

struct upstreams {
    uv_loop_t *loop;
    const struct secrets *secrets;
    void *trusted; /* X509_STORE */
    CURLM *multi;
    uv_timer_t timer;
    struct watched_sockets *sockets;
    unsigned exchanges;
};

/* Each handle's CURLOPT_PRIVATE is its exchange. */
void exchange_ended(struct exchange *exchange, CURLcode result);

/* CURLOPT_SSL_CTX_FUNCTION: what is trusted was read when the program began. */
CURLcode upstreams_trust(CURL *easy, void *context, void *upstreams);

/* Takes one request from what an endpoint's rate allows. */
bool rate_allows(const struct egress_endpoint *endpoint);
