/* egress_client.h - the ways out of sandboxes: gloveboxd's side of glovebox-egress. A way belongs
 * to one run or one session; what passed and what was refused is kept with it until a run or a cell
 * has told its caller. */
#pragma once

#include "base/error.h"
#include "contract/egress.h"
#include "engine/network/traffic_stats.h"

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

struct network; /* the socket to glovebox-egress, and every way */
struct egress_route;

/* Takes the socket; what passes is noted in `traffic`, which is borrowed. Fails ERR_SYSTEM. */
int network_open(uv_loop_t *loop, int socket, struct traffic *traffic, struct network **ret_network,
                 error *err);
void network_close(struct network *network); /* NULL: nothing */

/* Told once, after egress_route_end(): every record is there, or glovebox-egress has gone. */
typedef void egress_route_ended(void *context);

/* What listens inside a sandbox, in the order of struct egress_open. */
struct egress_route_sockets {
    unsigned count;
    int list[EGRESS_LISTENERS_MAX];
};

/* What a way is for, and whose: all borrowed for the call. `rules` are the policy's own, or what a
 * request has left of them. */
struct egress_route_order {
    const char *id; /* of a run or session */
    const struct account *account;
    const struct policy *policy;
    const struct network_policy *rules;
};

/* Told of every record that was there when egress_route_ask() was called, as often as it was; at
 * once, from within that call, if glovebox-egress is not there. */
typedef void egress_route_told(void *context);

/* Told each time a way has been opened whose policy intercepts TLS: the certificate (PEM) that the
 * sandbox has to trust from now on, borrowed for the call. NULL: glovebox-egress has ended before
 * it came, and a way that is not kept has none any more. */
typedef void egress_route_certified(void *context, const char *certificate);

/* Of connections that have ended. */
struct egress_route_bytes {
    uint64_t sent, received;
    uint64_t connections, refused; /* refused ones are connections, too */
};

struct egress_route_terms {
    struct egress_route_order order;
    struct egress_route_sockets sockets;
    uint32_t life_s;         /* the longest that the sandbox may last */
    egress_route_told *told; /* of a way that is kept */
    egress_route_certified *certified;
    void *context;
    struct egress_route_bytes used; /* of the policy's amounts, by ways before it */
};

/* Opens a way. Takes the sockets, also when it fails. `network` may be NULL: this daemon has none.
 * Fails  ERR_UNAVAILABLE  glovebox-egress is not there. */
int egress_route_open(struct network *network, const struct egress_route_terms *terms,
                      struct egress_route **ret_route, error *err);

/* A route of a session: glovebox-egress may end, and when it is back the route is opened again,
 * with what is left of its bytes. The policy is borrowed as long as the route lives. Takes the
 * sockets; fails as egress_route_open(). */
int egress_route_keep(struct network *network, const struct egress_route_terms *terms,
                      struct egress_route **ret_route, error *err);
void egress_route_ask(struct egress_route *route); /* of a way that is kept */
void egress_route_forget(
    struct egress_route *route); /* its records and failure: they have been told */

/* Ends its connections; asks for what is still to be told. One that is kept is opened no more. */
void egress_route_end(struct egress_route *route, egress_route_ended *ended, void *context);
struct egress_route_bytes route_used(const struct egress_route *route); /* with those before it */
bool egress_route_has_ended(const struct egress_route *route);
void egress_route_free(struct egress_route *route); /* no callback follows; NULL: nothing */

/* What is reported of a route: its records, a copy; and those that were not kept, since they were
 * more than a reader takes. `failure` says why connections ended early, NULL if none did. */
struct connection_log {
    struct egress_record *records;
    size_t count;
    uint64_t unlisted;
    const char *failure;
};

size_t egress_route_record_count(const struct egress_route *route);

/* All records but the first `told`. A story that memory is missing for has them unlisted. */
void egress_route_tell(const struct egress_route *route, size_t told,
                       struct connection_log *ret_story);
void connection_log_done(struct connection_log *story);

const char *network_reason_text(unsigned reason);

/* By glovebox, whatever rule names it; a host that does not answer refuses nothing. */
bool network_is_refused(const struct egress_record *record);
