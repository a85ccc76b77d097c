/* tls_intercept.h - intercepts TLS of a sandbox if its policy says so: acts as the server, with a
 * certificate of the channel's authority, and passes the plain bytes to a socket.
 *
 *     code --TLS--> interception --socketpair--> connection
 *
 * TLS 1.2 and 1.3, HTTP/1.1 by ALPN or no ALPN, no resumption: each connection has a full handshake
 * for one name. At most one record is held in each direction, until the receiver takes it. */
#pragma once

#include "egress/tls_authority.h"

#include <stdbool.h>
#include <uv.h>

struct tls_intercept;
struct interceptions; /* shared by all of them */

enum {
    INTERCEPTIONS_MAX = 256,       /* at once, of all channels */
    INTERCEPTIONS_OF_CHANNEL = 64, /* at once, of one channel */
    HANDSHAKES_A_SECOND = 100,     /* of one channel, and as many at once after a pause */
};

/* How many handshakes a channel may still begin. All zeros: it has begun none. */
struct handshakes {
    uint64_t at_ms;
    uint32_t level; /* a handshake costs 1000, each millisecond adds HANDSHAKES_A_SECOND */
    bool has_begun;
    unsigned now; /* current interceptions */
};

/* Call it before confine_outside(). Fails ERR_SYSTEM. */
int interceptions_open(uv_loop_t *loop, struct interceptions **ret_interceptions, error *err);

struct tls_intercept_order {
    struct tls_authority *authority;
    const char *name; /* the SNI of the ClientHello, for the certificate */
    int socket;       /* of the sandbox, which must not be watched any more */
    const unsigned char *greeting;
    size_t greeting_size; /* of the bytes that have been read from it already */
};

/* Begins the handshake. If it returns EGRESS_ALLOWED, it takes the socket, and gives *ret_socket,
 * which the caller closes, and *ret_interception, ended by tls_intercept_drop(). Else returns the
 * reason. */
enum egress_reason tls_intercept_begin(struct interceptions *interceptions,
                                       struct handshakes *handshakes,
                                       const struct tls_intercept_order *order, int *ret_socket,
                                       struct tls_intercept **ret_interception);

/* Why *ret_socket has ended before a request; never EGRESS_ALLOWED. */
enum egress_reason tls_intercept_failure(const struct tls_intercept *tls_intercept);

/* True if the client has refused the certificate. Reads what the client has sent so far. */
bool tls_intercept_is_refused(struct tls_intercept *tls_intercept);

/* True if bytes were written to the client since the last call, and its end was not. */
bool tls_intercept_is_moving(struct tls_intercept *tls_intercept);

void tls_intercept_drop(struct tls_intercept *tls_intercept); /* NULL: nothing */
