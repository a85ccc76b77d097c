/* upstream_request.h - one request to an endpoint, and the files that handle it.
 *
 *     connection --socketpair--> exchange --libcurl--> the upstream
 *
 *  upstream_request.c  its beginning, its end and the callbacks of the event loop
 *  upstream_send.c     sends the request, with the secret
 *  upstream_receive.c  passes the answer on, without the secret */
#pragma once

#include "egress/response_head.h"
#include "egress/upstreams.h"
#include "http1/chunked.h"
#include "http1/request_head.h"
#include "outbound/http_transfers.h"

struct upstreams {
    uv_loop_t *loop;
    const struct secrets *secrets;
    struct transfers *transfers;
    unsigned exchanges;
};

enum {
    PIECE = CURL_MAX_WRITE_SIZE,
    FRAME = 24, /* framing of a chunk: its size before it, CRLF after it */
    OUT_ROOM = ANSWER_HEAD_MAX + PIECE + REDACT_HOLD_MAX + 2 * FRAME,
};

struct exchange {
    struct upstreams *upstreams;
    struct egress_endpoint endpoint;
    const struct secret *secret; /* NULL: nothing is added */
    unsigned *of_channel;
    unsigned address_count;
    struct in6_addr addresses[16];
    struct transfer_place place;
    int socket;
    uv_poll_t poll;
    CURL *easy; /* NULL until the head has come */
    struct curl_slist *fields, *resolved;
    struct http_head head;
    struct http_chunks chunks;
    uint64_t body_left; /* of the request */
    bool body_is_over;
    bool waits_for_body, waits_for_room; /* libcurl is paused */
    bool is_over;                        /* libcurl has finished */
    bool is_ended;                       /* everything has been written, or it has failed */
    enum egress_reason failure;
    struct answer_head answer;
    struct redact redact;
    uint64_t scrubbed; /* secrets removed before the body */
    size_t in_size, in_from;
    size_t out_size, out_from;
    char in[HTTP_HEAD_MAX + 2048];
    char out[OUT_ROOM];
};

/* upstream_request.c */
void exchange_watch(struct exchange *exchange);
void exchange_end(struct exchange *exchange, enum egress_reason failure);

/* upstream_send.c: sends the request when its head has come. Returns -1 on failure. */
int exchange_send_request(struct exchange *exchange);

/* upstream_receive.c: callbacks of libcurl, and the rest of the answer. */
size_t exchange_field_came(char *bytes, size_t one, size_t size, void *context);
size_t exchange_body_came(char *bytes, size_t one, size_t size, void *context);
void exchange_flush(struct exchange *exchange);
void exchange_finish(struct exchange *exchange);

/* Callback for the end of a transfer of libcurl. */
void exchange_ended(void *context, CURLcode result);

/* rate_limits.c: counts one request. False if the endpoint's rate does not allow it, or if too many
 * endpoints are in use at once. */
bool rate_allows(const struct egress_endpoint *endpoint, int64_t now_ms);
