/* route_usage.h - connections on the network route of a session while one of its programs ran. The
 * route is the session's, so two programs that run at once report the same connections. It is in
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
    void (*told)(void *context);       /* all records up to the question are there */
    struct connection_log connections; /* the records that were taken */
    size_t seen;                       /* number of records of the route that were seen */
    uint64_t unlisted_seen;
    uint64_t ask; /* number of the question; 0: none is pending */
    struct route_usage *next;
};

/* `context` and `told` have been set. */
void route_usage_begin(struct session *session, struct route_usage *use);

/* Asks glovebox-egress for the records. False: nothing to wait for; else `told` follows, if
 * glovebox-egress answers. */
bool route_usage_ask(struct session *session, struct route_usage *use);

/* Takes the records that are there. They stay until route_usage_done(). */
void route_usage_end(struct session *session, struct route_usage *use);
void route_usage_done(struct route_usage *use);

/* For session_route.c: to be called before the records of the route are freed. */
void route_usages_take(struct session *session);
/* The route is about to be closed: notifies waiters. */
void route_usages_leave(struct session *session);
/* So many questions were answered. */
void route_usages_answer(struct session *session);
