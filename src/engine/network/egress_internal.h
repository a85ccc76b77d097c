/* egress_internal.h - shared by egress_client.c, which reads from glovebox-egress, and routes.c. */
#pragma once

#include "engine/network/egress_client.h"

struct egress_route {
    struct network *network; /* NULL when no more messages can come for it */
    struct egress_route *next;
    uint32_t channel;
    bool is_freed; /* its end is awaited, and no result is needed */
    bool is_ending;
    bool close_is_due; /* the message could not be sent yet */
    bool is_shut;      /* kept, and not open at glovebox-egress (yet) */
    const char *failure;
    egress_route_ended *ended;
    void *context;
    egress_route_certified *certified; /* NULL: no interception, or no waiter */
    void *certified_context;
    char *certificate; /* the part that has come */
    size_t certificate_size;
    uint32_t life_s;

    struct egress_route_terms kept; /* all zero: not kept, ends with glovebox-egress */
    unsigned questions,
        asked; /* of egress_route_ask(): all that wait for an answer, those that were sent */
    struct egress_route_bytes used; /* by earlier routes, too */
    struct traffic_source source;

    size_t count, room;
    struct egress_record *records;
    uint64_t unlisted;
    uint64_t open; /* connections that have begun: unlisted if glovebox-egress ends */
};

struct network {
    int socket;
    uv_poll_t poll;
    bool is_up;        /* or is starting: until its hello, packets wait in the socket */
    bool has_greeted;  /* a hello has come */
    uv_timer_t reopen; /* opens shut routes when there is room on the socket */
    uint32_t last_channel;
    struct traffic *traffic;
    struct egress_route *egress_routes;
};

void egress_route_unlink(struct egress_route *route);

/* It is kept, and still in use. */
bool egress_route_is_reopened(const struct egress_route *route);

/* Sends the rules and endpoints for a route that is opened next: route_rules.c. */
int egress_route_send_rules(const struct egress_route *route, const struct network_policy *policy,
                            error *err);

/* Calls those that wait now; a callback may ask again, or free the route. */
void egress_route_answer(struct egress_route *route, unsigned count);

/* Takes a piece of the certificate. Returns -1 if it is malformed. */
int egress_route_hear_authority(struct egress_route *route, const struct egress_authority *piece);

/* The route gets no more messages; its owner, if it has one, is notified. */
void egress_route_conclude(struct egress_route *route);

/* glovebox-egress does not know the route: later requests are answered at once. */
void egress_route_shut(struct egress_route *route, const char *why);

/* The same, and it is not opened again. */
void egress_route_lose(struct egress_route *route, const char *why);

void egress_routes_reopen(struct network *network); /* shut ones */
void egress_routes_reopen_later(struct network *network);
void egress_route_send_question(struct egress_route *route);
void egress_route_send_close(struct egress_route *route);
