/* tls_intercept.h - TLS of a sandbox that its policy lets us read: we are the server, with a
 * certificate of the channel's authority, and what the client says stands in a socket, plain.
 *
 *     code --TLS--> interception --socketpair--> connection
 *
 * TLS 1.2 and 1.3, HTTP/1.1 by ALPN or no ALPN, no resumption: each connection is a whole handshake
 * for one name. At most one record each way is held: who does not read is not read from. */
#pragma once

#include "egress/tls_authority.h"

#include <stdbool.h>
#include <uv.h>

struct tls_intercept;
struct interceptions; /* what all of them share */

enum {
    INTERCEPTIONS_MAX = 256,       /* at once, of all channels */
    INTERCEPTIONS_OF_CHANNEL = 64, /* of these */
    HANDSHAKES_A_SECOND = 100,     /* of a channel, and as many at once after a pause */
};

/* How many handshakes a channel may still ask for. Zeros: none has been asked for. */
struct handshakes {
    uint64_t at_ms;
    uint32_t level; /* a handshake costs 1000, each millisecond brings HANDSHAKES_A_SECOND */
    bool has_begun;
    unsigned now; /* interceptions that live */
};

/* Before the program confines itself. Fails ERR_SYSTEM. */
int interceptions_open(uv_loop_t *loop, struct interceptions **ret_interceptions, error *err);

struct tls_intercept_order {
    struct tls_authority *authority;
    const char *name; /* that the greeting has named: what we are taken for */
    int socket;       /* of the sandbox, which is not watched any more */
    const unsigned char *greeting;
    size_t greeting_size; /* of what has been read of it already */
};

/* Begins the handshake. Takes the socket if it returns EGRESS_ALLOWED, and gives *ret_socket, which
 * the caller closes, and *ret_interception, ended by tls_intercept_drop(). Or says why not. */
enum egress_reason tls_intercept_begin(struct interceptions *interceptions,
                                       struct handshakes *handshakes,
                                       const struct tls_intercept_order *order, int *ret_socket,
                                       struct tls_intercept **ret_interception);

/* Why nothing was said, asked when *ret_socket has ended before a request; never EGRESS_ALLOWED. */
enum egress_reason tls_intercept_failure(const struct tls_intercept *tls_intercept);

/* True if something of what was told is on its way yet, and has moved since this was last asked. */
bool tls_intercept_is_moving(struct tls_intercept *tls_intercept);

void tls_intercept_drop(struct tls_intercept *tls_intercept); /* NULL: nothing */
