/* connection.h - one connection out of a sandbox, between the files that take it on its way:
 *
 *  accepted --> request --> resolving --> connecting --> relaying --> over
 *      |          |  ^
 *      +--> hello-+  |  a request may be CONNECT, and a TLS greeting follows it
 *      +--> question |  DNS by TCP
 *      +-------------+--> lingering: a refusal is on its way to be read
 *
 *  connection.c   its beginning, its end and the loop's calls
 *  decide.c       from its first byte to the rule that allows it
 *  tls_connection.c    TLS that is intercepted: what follows comes plain, from a socket of its own
 *  dial.c         from the rule to a socket outside
 *  relay.c        bytes both ways
 *  refusal.c      why not, told in the protocol that the code speaks */
#pragma once

#include "egress/egress.h"
#include "egress/splice.h"

enum {
    HEAD_MS = 5000, /* a greeting or the head of a request must have come */
};

enum state { IN_REQUEST, IN_HELLO, IN_QUESTION, RESOLVING, CONNECTING, RELAYING, LINGERING, OVER };

/* The protocol of the other side, as far as refusals need it. */
enum speech { SPEAKS_NOTHING_WE_KNOW, SPEAKS_HTTP, SPEAKS_TLS };

/* The socket outside; each address that is tried has its own. */
struct outer {
    struct connection *connection;
    int socket;
    uv_poll_t poll;
    struct exchange *exchange; /* at its other end, where the way leads to an endpoint; or NULL */
};

struct connection {
    struct channel *channel;
    struct connection *next, **place;
    enum state state;
    enum speech speech;
    bool has_status; /* of the answer: it has begun */
    bool is_http;    /* a plain request: one, then the end */
    bool is_direct;  /* to an address, not to a name */
    bool in_tunnel;  /* a CONNECT was granted, to a port where HTTP is read */
    int inner;
    uv_poll_t *inner_poll;               /* one of these: */
    uv_poll_t inner_polls[2];            /* of the accepted socket, of an interception's */
    struct tls_intercept *tls_intercept; /* between code and us, or NULL */
    struct outer *outer;                 /* NULL while there is none */
    uv_timer_t timer;
    unsigned handles;
    unsigned char *head; /* bytes read before anything is passed on */
    size_t head_size;
    size_t body_from; /* of these, the first of a request's body */
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
void connection_tell_begun(const struct connection *connection);
void connection_inner_is_ready(uv_poll_t *poll, int status, int events);
void connection_time_is_up(uv_timer_t *timer);
void connection_handle_closed(uv_handle_t *handle);

/* decide.c */
void connection_begin(struct connection *connection, const struct listener *listener);
void connection_read(struct connection *connection); /* more of what comes before a decision */

/* tls_connection.c: the greeting has been read, and its rule asks for it. */
void connection_intercept(struct connection *connection);

/* dial.c: nothing more is read from the code until egress is open. */
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
