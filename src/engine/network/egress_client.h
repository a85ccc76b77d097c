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
struct way;

/* Takes the socket; what passes is noted in `traffic`, which is borrowed. Fails ERR_SYSTEM. */
int network_open(uv_loop_t *loop, int socket, struct traffic *traffic, struct network **ret_network,
                 error *err);
void network_close(struct network *network); /* NULL: nothing */

/* Told once, after way_end(): every record is there, or glovebox-egress has gone. */
typedef void way_ended(void *context);

/* What listens inside a sandbox, in the order of struct egress_open. */
struct way_sockets {
    unsigned count;
    int list[EGRESS_LISTENERS_MOST];
};

/* What a way is for, and whose: all borrowed for the call. `rules` are the policy's own, or what a
 * request has left of them. */
struct way_order {
    const char *id; /* of a run or session */
    const struct account *account;
    const struct policy *policy;
    const struct network_policy *rules;
};

/* Told of every record that was there when way_ask() was called, as often as it was; at once, from
 * within that call, if glovebox-egress is not there. */
typedef void way_told(void *context);

/* Told each time a way has been opened whose policy intercepts TLS: the certificate (PEM) that the
 * sandbox has to trust from now on, borrowed for the call. NULL: glovebox-egress has ended before
 * it came, and a way that is not kept has none any more. */
typedef void way_certified(void *context, const char *certificate);

/* Of connections that have ended. */
struct way_bytes {
    uint64_t sent, received;
    uint64_t connections, refused; /* refused ones are connections, too */
};

struct way_terms {
    struct way_order order;
    struct way_sockets sockets;
    uint32_t life_s; /* the longest that the sandbox may last */
    way_told *told;  /* of a way that is kept */
    way_certified *certified;
    void *context;
    struct way_bytes used; /* of the policy's amounts, by ways before it */
};

/* Opens a way. Takes the sockets, also when it fails. `network` may be NULL: this daemon has none.
 * Fails  ERR_UNAVAILABLE  glovebox-egress is not there. */
int way_open(struct network *network, const struct way_terms *terms, struct way **ret_way,
             error *err);

/* A way of a session: glovebox-egress may end, and when it is back the way is opened again, with
 * what is left of its bytes. The policy is borrowed as long as the way lives.
 * Takes the sockets; fails as way_open(). */
int way_keep(struct network *network, const struct way_terms *terms, struct way **ret_way,
             error *err);
void way_ask(struct way *way);    /* of a way that is kept */
void way_forget(struct way *way); /* its records and failure: they have been told */

/* Ends its connections; asks for what is still to be told. One that is kept is opened no more. */
void way_end(struct way *way, way_ended *ended, void *context);
struct way_bytes way_used(const struct way *way); /* with those before it */
bool way_has_ended(const struct way *way);
void way_free(struct way *way); /* nobody is told any more; NULL: nothing */

/* What is told of a way: its records, a copy; and those that were not kept, since they were more
 * than anybody reads. `failure` says why connections ended early, NULL if none did. */
struct way_story {
    struct egress_record *records;
    size_t count;
    uint64_t unlisted;
    const char *failure;
};

size_t way_record_count(const struct way *way);

/* All records but the first `told`. A story that memory is missing for has them unlisted. */
void way_tell(const struct way *way, size_t told, struct way_story *ret_story);
void way_story_done(struct way_story *story);

const char *network_reason_text(unsigned reason);

/* By glovebox, whatever rule names it; a host that does not answer refuses nothing. */
bool network_is_refused(const struct egress_record *record);
