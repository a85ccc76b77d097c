/* egress_client.h - network routes of sandboxes: gloveboxd's side of glovebox-egress. A route
 * belongs to one run or one session, and keeps its records until a run or a cell has reported
 * them. */
#pragma once

#include "base/error.h"
#include "contract/egress.h"
#include "engine/network/traffic_stats.h"

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

struct network; /* the socket to glovebox-egress, and all routes */
struct egress_route;

/* Takes the socket; connections are counted in `traffic`, which is borrowed. Fails ERR_SYSTEM. */
int network_open(uv_loop_t *loop, int socket, struct traffic *traffic, struct network **ret_network,
                 error *err);
void network_close(struct network *network); /* NULL: nothing */

/* For a policy with connections. Fails ERR_UNAVAILABLE if `network` is NULL: there is none here. */
int network_demand(const struct network *network, const char *policy, error *err);

/* Called once, after egress_route_end(): every record has come, or glovebox-egress has ended. */
typedef void egress_route_ended(void *context);

/* The listening sockets inside a sandbox, in the order of struct egress_open. */
struct egress_route_sockets {
    unsigned count;
    int list[EGRESS_LISTENERS_MAX];
};

/* The owner and the rules of a route, borrowed for the call. `rules` are the policy's, or narrower
 * ones of a request. */
struct egress_route_order {
    const char *id; /* of a run or session */
    const struct account *account;
    const struct policy *policy;
    const struct network_policy *rules;
};

/* Called once per egress_route_ask(), when every record of that time has come; at once, within that
 * call, if glovebox-egress is not running. */
typedef void egress_route_told(void *context);

/* Called each time a route whose policy intercepts TLS was opened, with the certificate (PEM) that
 * the sandbox must trust from now on, borrowed for the call. NULL: glovebox-egress has ended before
 * it came; a route that is not kept will get none. */
typedef void egress_route_certified(void *context, const char *certificate);

/* Of connections that have ended. */
struct egress_route_bytes {
    uint64_t sent, received;
    uint64_t connections, refused; /* refused ones are counted in both */
};

struct egress_route_terms {
    struct egress_route_order order;
    struct egress_route_sockets sockets;
    uint32_t life_s;         /* the longest lifetime of the sandbox */
    egress_route_told *told; /* of a kept route */
    egress_route_certified *certified;
    void *context;
    struct egress_route_bytes used; /* by earlier routes, of the policy's amounts */
};

/* Opens a route. Takes the sockets, also on failure. `network` may be NULL: this daemon has none.
 * Fails ERR_UNAVAILABLE  glovebox-egress is not running. */
int egress_route_open(struct network *network, const struct egress_route_terms *terms,
                      struct egress_route **ret_route, error *err);

/* Opens a route of a session: if glovebox-egress ends and is restarted, the route is opened again,
 * with the rest of its bytes. The policy must live as long as the route. Takes the sockets; fails
 * as egress_route_open(). */
int egress_route_keep(struct network *network, const struct egress_route_terms *terms,
                      struct egress_route **ret_route, error *err);
void egress_route_ask(struct egress_route *route);    /* of a kept route */
void egress_route_forget(struct egress_route *route); /* its records and failure, after a report */

/* Ends its connections, and asks for the last records. A kept route is not opened again. */
void egress_route_end(struct egress_route *route, egress_route_ended *ended, void *context);
struct egress_route_bytes route_used(const struct egress_route *route); /* with earlier routes */
bool egress_route_has_ended(const struct egress_route *route);
void egress_route_free(struct egress_route *route); /* no callback follows; NULL: nothing */

/* The connections of a route: a copy of its records, and how many were dropped since there were too
 * many. `failure` says why connections ended early, NULL: none did. */
struct connection_log {
    struct egress_record *records;
    size_t count;
    uint64_t unlisted;
    const char *failure;
};

size_t egress_route_record_count(const struct egress_route *route);

/* All records but the first `told`. Without memory they are only counted as unlisted. */
void egress_route_tell(const struct egress_route *route, size_t told,
                       struct connection_log *ret_log);
void connection_log_done(struct connection_log *kept);

const char *network_reason_text(unsigned reason);

/* True if glovebox refused it, even if a rule names it; a host that does not answer is no
 * refusal. */
bool network_is_refused(const struct egress_record *record);
