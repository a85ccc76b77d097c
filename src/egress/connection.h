/* connection.h - one connection out of a sandbox, its states, and the files that handle it:
 *
 *  accepted --> request --> resolving --> connecting --> relaying --> over
 *      |          |  ^
 *      +--> hello-+  |  a request may be CONNECT, and a TLS greeting follows it
 *      +--> question |  DNS by TCP
 *      +-------------+--> lingering: a refusal was sent, and the client still has to read it
 *
 *  connection.c   its beginning, its end and the callbacks of the event loop
 *  match_rule.c   from its first byte to the rule that allows it
 *  tls_connection.c    intercepted TLS: plain bytes come from a socket pair then
 *  dial.c         from the rule to a socket outside
 *  relay.c        copies bytes in both directions
 *  refusal.c      answers a refusal, in the protocol of the client */
#pragma once

#include "egress/egress.h"
#include "egress/splice.h"

enum {
    HEAD_MS = 5000, /* time limit for a ClientHello or the head of a request */
};

enum state { IN_REQUEST, IN_HELLO, IN_QUESTION, RESOLVING, CONNECTING, RELAYING, LINGERING, OVER };

/* The protocol of the client, for refusals. */
enum speech { SPEAKS_NOTHING_WE_KNOW, SPEAKS_HTTP, SPEAKS_TLS };

/* The socket outside; each address that is tried has its own. */
struct outer {
    struct connection *connection;
    int socket;
    uv_poll_t poll;
    struct exchange *exchange; /* at its other end, for requests to an endpoint; or NULL */
};

struct connection {
    struct channel *channel;
    struct connection *next, **place;
    enum state state;
    enum speech speech;
    bool has_status; /* the answer has begun */
    bool is_http;    /* one plain HTTP request, then the end */
    bool is_direct;  /* to an IP address, not to a name */
    bool in_tunnel;  /* a CONNECT was granted, to a port where HTTP is read */
    int inner;
    uv_poll_t *inner_poll;               /* one of these: */
    uv_poll_t inner_polls[2];            /* for the accepted socket, for that of an interception */
    struct tls_intercept *tls_intercept; /* terminates the client's TLS, or NULL */
    struct outer *outer;                 /* NULL while there is none */
    uv_timer_t timer;
    unsigned handles;
    unsigned char *head; /* bytes read before a decision */
    size_t head_size;
    size_t body_from; /* offset in `head` of a request's body */
    const struct egress_rule *rule;
    struct lookup *lookup;
    struct in6_addr addresses[ADDRESSES_MAX];
    unsigned address_count, address_next;
    struct splice up, down;
    struct egress_record record;
    uint64_t began_us;
};

/* connection.c */
void connection_tell(struct connection *connection, enum egress_reason reason);
void connection_tell_begun(struct connection *connection);
void connection_inner_is_ready(uv_poll_t *poll, int status, int events);
void connection_time_is_up(uv_timer_t *timer);
void connection_handle_closed(uv_handle_t *handle);

/* match_rule.c */
void connection_begin(struct connection *connection, const struct listener *listener);
void connection_read(struct connection *connection); /* reads more bytes before a decision */

/* tls_connection.c: intercepts TLS after the ClientHello was read, if its rule says so. */
void connection_intercept(struct connection *connection);

/* dial.c: nothing more is read from the client until the outer connection is open. */
void connection_go_out(struct connection *connection, const struct egress_rule *rule);
void connection_dial_next(struct connection *connection); /* of its addresses */
void connection_outer_is_ready(uv_poll_t *poll, int status, int events);
void connection_drop_outer(struct connection *connection);

/* relay.c */
void connection_begin_relay(struct connection *connection);
void connection_relay(struct connection *connection);
void connection_relayed_long_enough(struct connection *connection); /* or had nothing to relay */

/* refusal.c */
void connection_refuse(struct connection *connection, enum egress_reason reason);
void connection_linger(struct connection *connection); /* until it has read the answer */
void connection_go_on_lingering(struct connection *connection);
void connection_drain(struct connection *connection); /* while it lingers */
