/* egress_internal.h - what network.c, which reads from glovebox-egress, and routes.c share. */
#pragma once

#include "engine/network/egress_client.h"

struct egress_route {
    struct network *network; /* NULL once it cannot hear anything more */
    struct egress_route *next;
    uint32_t channel;
    bool is_freed; /* its end is awaited, and no result is wanted */
    bool is_ending;
    bool close_is_due; /* the kernel had no room or memory for it */
    bool is_shut;      /* kept, and glovebox-egress does not know it (yet) */
    const char *failure;
    egress_route_ended *ended;
    void *context;
    egress_route_certified *certified; /* NULL: nothing is intercepted, or there is no waiter */
    void *certified_context;
    char *certificate; /* as much of it as has come */
    size_t certificate_size;
    uint32_t life_s;

    struct egress_route_terms kept; /* all zero: it is not, and ends with glovebox-egress */
    unsigned questions,
        asked; /* of egress_route_ask(): all that are open, those that have been sent */
    struct egress_route_bytes used; /* by ways before it, too */
    struct traffic_source source;

    size_t count, room;
    struct egress_record *records;
    uint64_t unlisted;
};

struct network {
    int socket;
    uv_poll_t poll;
    bool is_up;        /* or has yet to start: until its first hello, packets wait in the socket */
    bool has_greeted;  /* it has said hello once */
    uv_timer_t reopen; /* ways that are shut, once there is room on the socket */
    uint32_t last_channel;
    struct traffic *traffic;
    struct egress_route *egress_routes;
};

void egress_route_unlink(struct egress_route *route);

/* It is kept, and still in use. */
bool egress_route_is_reopened(const struct egress_route *route);

/* The rules and endpoints of a channel that is opened next: route_rules.c. */
int egress_route_send_rules(const struct egress_route *route, const struct network_policy *policy,
                            error *err);

/* Calls those that wait now; a callback may ask again, or free the route. */
void egress_route_answer(struct egress_route *route, unsigned count);

/* A piece of the certificate has come. Returns -1 if it is none. */
int egress_route_hear_authority(struct egress_route *route, const struct egress_authority *piece);

/* The route receives nothing more; its owner, if it has one, is notified. */
void egress_route_conclude(struct egress_route *route);

/* glovebox-egress knows nothing of it: later requests are answered at once. */
void egress_route_shut(struct egress_route *route, const char *why);

/* Nor will it again. */
void egress_route_lose(struct egress_route *route, const char *why);

void egress_routes_reopen(struct network *network); /* those that are shut */
void egress_routes_reopen_later(struct network *network);
void egress_route_send_question(struct egress_route *route);
void egress_route_send_close(struct egress_route *route);
