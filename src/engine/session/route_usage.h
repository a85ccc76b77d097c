/* route_usage.h - what passed on the egress route of a session while one of its programs ran: the
 * route is the session's, so two programs that ran at once report the same connections. Lies in
 * the program's own storage, from route_usage_begin() to route_usage_end(). */
#pragma once

#include "engine/network/egress_client.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct session;

enum { ROUTE_USAGE_ROWS = 64 };

struct route_usage {
    void *context;
    void (*told)(void *context); /* all that had passed when it was asked is there */
    struct connection_log story; /* as far as it was taken */
    size_t seen;                 /* of the way's records */
    uint64_t unlisted_seen;
    uint64_t ask; /* number of the question; 0: none is open */
    struct route_usage *next;
};

/* `context` and `told` have been set. */
void route_usage_begin(struct session *session, struct route_usage *use);

/* False: nothing is awaited; else `told` follows, if glovebox-egress answers. */
bool route_usage_ask(struct session *session, struct route_usage *use);

/* Takes what there is. The story stays until route_usage_done(). */
void route_usage_end(struct session *session, struct route_usage *use);
void route_usage_done(struct route_usage *use);

/* For session_route.c: the records of the route are about to be forgotten. */
void route_usages_take(struct session *session);
/* The route is about to close: waiters are notified. */
void route_usages_leave(struct session *session);
/* So many questions were answered. */
void route_usages_answer(struct session *session);
