/* egress_internal.h - what network.c, which hears glovebox-egress, and routes.c share. */
#pragma once

#include "engine/network/egress_client.h"

struct way {
    struct network *network; /* NULL once it cannot hear anything more */
    struct way *next;
    uint32_t channel;
    bool is_freed; /* its end is awaited, and nobody wants to know */
    bool is_ending;
    bool is_shut; /* kept, and glovebox-egress does not know it (yet) */
    const char *failure;
    way_ended *ended;
    void *context;
    way_certified *certified; /* NULL: nothing is intercepted, or nobody waits any more */
    void *certified_context;
    char *certificate; /* as much of it as has come */
    size_t certificate_size;
    uint32_t life_s;

    struct way_terms kept;     /* all zero: it is not, and ends with glovebox-egress */
    unsigned questions, asked; /* of way_ask(): all that are open, those that have been sent */
    struct way_bytes used;     /* by ways before it, too */
    struct traffic_source source;

    size_t count, room;
    struct egress_record *records;
    uint64_t unlisted;
};

struct network {
    int socket;
    uv_poll_t poll;
    bool is_up;        /* it has said hello */
    uv_timer_t reopen; /* ways that are shut, once there is room on the socket */
    uint32_t last_channel;
    struct traffic *traffic;
    struct way *ways;
};

void way_unlink(struct way *way);

/* It is kept, and somebody wants it still. */
bool way_is_reopened(const struct way *way);

/* The rules and endpoints of a channel that is opened next: route_rules.c. */
int way_send_rules(const struct way *way, const struct network_policy *policy, error *err);

/* Tells those that have waited so far; who is told may ask again, or free the way. */
void way_answer(struct way *way, unsigned count);

/* A piece of the certificate has come. Returns -1 if it is none. */
int way_hear_authority(struct way *way, const struct egress_authority *piece);

/* It hears nothing more: nobody wants to know, or its owner is told. */
void way_conclude(struct way *way);

/* glovebox-egress knows nothing of it: who asks from now on is answered at once. */
void way_shut(struct way *way, const char *why);

/* Nor will it again. */
void way_lose(struct way *way, const char *why);

void ways_reopen(struct network *network); /* those that are shut */
void ways_reopen_later(struct network *network);
void way_send_question(struct way *way);
void way_send_close(const struct way *way);
