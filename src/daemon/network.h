/* network.h - the ways out of sandboxes: gloveboxd's side of glovebox-egress. A way belongs to one
 * run; what passed and what was refused is kept with it until the run has told its caller. */
#pragma once

#include "base/error.h"
#include "contract/egress.h"
#include "model/network_policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

struct network; /* the socket to glovebox-egress, and every way */
struct way;

/* Takes the socket. Fails ERR_SYSTEM. */
int network_open(uv_loop_t *loop, int socket, struct network **ret_network, error *err);
void network_close(struct network *network); /* NULL: nothing */

/* Told once, after way_end(): every record is there, or glovebox-egress has gone. */
typedef void way_ended(void *context);

/* What listens inside a sandbox, in the order of struct egress_open. */
struct way_sockets {
    unsigned count;
    int list[EGRESS_LISTENERS_MOST];
};

/* Opens a way. Takes the sockets, also when it fails. `network` may be NULL: this daemon has none.
 * Fails  ERR_UNAVAILABLE  glovebox-egress is not there. */
int way_open(struct network *network, const struct network_policy *policy,
             const struct way_sockets *sockets, struct way **ret_way, error *err);

/* Ends its connections; asks for what is still to be told. */
void way_end(struct way *way, way_ended *ended, void *context);
bool way_has_ended(const struct way *way);
void way_free(struct way *way); /* nobody is told any more; NULL: nothing */

/* Borrowed, while the way lives. */
const struct egress_record *way_records(const struct way *way, size_t *ret_count);

/* Records that were not kept: more than anybody reads. */
uint64_t way_unlisted(const struct way *way);

/* Why it ended early: glovebox-egress has gone. NULL if it has not. */
const char *way_failure(const struct way *way);

const char *network_reason_text(unsigned reason);
