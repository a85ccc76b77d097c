/* egress.h - structs and shared functions of glovebox-egress. One thread, one event loop. */
#pragma once

#include "egress/fake_addresses.h"
#include "egress/rules.h"
#include "egress/tls_intercept.h"
#include "egress/upstreams.h"
#include "outbound/resolver.h"

#include <stdbool.h>
#include <uv.h>

struct channel;
struct connection;
struct egress;

struct listener {
    struct channel *channel;
    enum egress_listener kind;
    uint16_t port;
    int socket;
    uv_poll_t poll;
};

/* The egress of one sandbox. */
struct channel {
    struct egress *egress;
    uint32_t id;
    struct egress_open terms;
    struct rules rules;
    struct fake_addresses names;
    struct tls_authority *authority; /* NULL: its rules intercept nothing */
    struct handshakes handshakes;
    unsigned listener_count;
    struct listener listeners[EGRESS_LISTENERS_MAX];
    unsigned open_handles; /* of libuv; the channel is freed after the last */
    struct connection *first;
    unsigned connections, exchanges;
    uint64_t sent, received;
    uint32_t records, lost, begun;
    unsigned tell_turns; /* turns of the loop until EGRESS_TOLD is sent; 0: not requested */
    bool is_closing;
    struct channel *next;
};

struct egress {
    uv_loop_t loop;
    int daemon;
    uv_poll_t daemon_poll;
    uv_check_t turn; /* counts turns until EGRESS_TOLD */
    uv_idle_t no_rest;
    struct rules coming; /* rules of the channel that is opened next */
    uint32_t coming_for;
    struct channel *channels;
    unsigned connections, connections_max; /* of all channels */
    struct resolver *resolver;
    const char *hosts; /* the text of /etc/hosts, only for upstreams of endpoints */
    struct upstreams *upstreams;
    struct interceptions *interceptions;
};

/* link.c: the socket to gloveboxd. */
int link_open(struct egress *egress, int socket, error *err);
void link_tell(struct channel *channel, const struct egress_record *record);
void link_tell_begun(struct channel *channel, struct egress_record *record);
void link_tell_closed(struct channel *channel);
void link_tell_authority(struct channel *channel);

/* channel.c */
struct channel *channel_open(struct egress *egress, const struct egress_open *terms,
                             const struct rules *rules, const int *sockets, error *err);
struct channel *channel_find(struct egress *egress, uint32_t id);
void channel_close(struct channel *channel);         /* ends its connections -> EGRESS_CLOSED */
void channel_handle_closed(struct channel *channel); /* one of open_handles */

/* dns_server.c: DNS questions of a sandbox. */
void lookup_by_udp(struct listener *listener);
/* Answers the question in `message`. Returns the size of the answer, 0 for none. */
size_t lookup_answer(struct channel *channel, const unsigned char *message, size_t size,
                     unsigned char *ret_answer);

/* connection.c */
void connection_accept(struct listener *listener);
void connection_end(struct connection *connection, enum egress_reason reason);

/* reason.c */
const char *reason_name(enum egress_reason reason);
const char *reason_text(enum egress_reason reason);
unsigned reason_status(enum egress_reason reason);
