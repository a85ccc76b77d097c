/* upstream_request.h - one request to an endpoint, between the files that take it there and back.
 *
 *     connection --socketpair--> exchange --libcurl--> the upstream
 *
 *  upstream_request.c  its beginning, its end and the loop's calls
 *  upstream_send.c     what code said, and the secret next to it
 *  upstream_receive.c  what came back, without the secret */
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
    FRAME = 24, /* the size of a chunk before it, the end of it after it */
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
    bool is_over;                        /* libcurl has nothing more for us */
    bool is_ended;                       /* everything has been written, or it has failed */
    enum egress_reason failure;
    struct answer_head answer;
    struct redact redact;
    uint64_t scrubbed; /* of what came before the body */
    size_t in_size, in_from;
    size_t out_size, out_from;
    char in[HTTP_HEAD_MAX + 2048];
    char out[OUT_ROOM];
};

/* upstream_request.c */
void exchange_watch(struct exchange *exchange);
void exchange_end(struct exchange *exchange, enum egress_reason failure);

/* upstream_send.c: the head has come, the request goes out. -1 if it cannot. */
int exchange_send_request(struct exchange *exchange);

/* upstream_receive.c: libcurl's calls, and what is left to pass on. */
size_t exchange_field_came(char *bytes, size_t one, size_t size, void *context);
size_t exchange_body_came(char *bytes, size_t one, size_t size, void *context);
void exchange_flush(struct exchange *exchange);
void exchange_finish(struct exchange *exchange);

/* Callback for the end of a transfer of libcurl. */
void exchange_ended(void *context, CURLcode result);

/* rate_limits.c: takes one request from what an endpoint's rate allows. False too if more endpoints
 * are asked at once than there is room for. */
bool rate_allows(const struct egress_endpoint *endpoint, int64_t now_ms);
