/* route_usage.h - what passed on the way out of a session while one of its programs ran: the way is
 * the session's, so two programs that ran at once are told the same connections. Lies in the
 * program's own storage, from way_use_begin() to way_use_end(). */
#pragma once

#include "engine/network/egress_client.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct session;

enum { WAY_USE_ROWS = 64 };

struct way_use {
    void *context;
    void (*told)(void *context); /* all that had passed when it was asked is there */
    struct way_story story;      /* as far as it was taken */
    size_t seen;                 /* of the way's records */
    uint64_t unlisted_seen;
    uint64_t ask; /* number of the question; 0: none is open */
    struct way_use *next;
};

/* `context` and `told` have been set. */
void way_use_begin(struct session *session, struct way_use *use);

/* False: nothing is awaited; else `told` follows, if glovebox-egress answers. */
bool way_use_ask(struct session *session, struct way_use *use);

/* Takes what there is. The story stays until way_use_done(). */
void way_use_end(struct session *session, struct way_use *use);
void way_use_done(struct way_use *use);

/* For session_route.c: the records of the way are about to be forgotten. */
void way_uses_take(struct session *session);
/* The way is about to go: who waits is told. */
void way_uses_leave(struct session *session);
/* So many questions were answered. */
void way_uses_answer(struct session *session);
