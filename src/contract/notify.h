/* notify.h - what gloveboxd sends to glovebox-notify, and what it answers.
 *
 * One SEQPACKET socket, one peer; a message is a packet (base/packet.h) with a struct of exactly
 * its size. gloveboxd never waits: a message that the socket does not accept is dropped and
 * counted. */
#pragma once

#include <stdint.h>

enum {
    NOTIFY_VERSION = 1,
    NOTIFY_ID_SIZE = 64,
    NOTIFY_BODY_SIZE = 936,
    NOTIFY_CAUSE_SIZE = 488,
};

enum notify_kind {
    /* notify -> daemon */
    NOTIFY_HELLO = 1, /* struct notify_hello, once */
    NOTIFY_OUTCOME,   /* struct notify_outcome: whether an event was delivered */

    /* daemon -> notify */
    NOTIFY_EVENT = 32, /* struct notify_event: to the webhook */
    NOTIFY_CHECKPOINT, /* struct notify_event without an id: to the witness, where only the newest
                          counts */
    NOTIFY_SPAN,       /* struct notify_event without an id: a span as JSON of OTLP, collected */
};

struct notify_hello {
    uint32_t version;
    uint32_t reserved;
};

struct notify_event {
    char id[NOTIFY_ID_SIZE]; /* the same each time it is sent, so that receivers see repetitions */
    uint32_t size;           /* of the body */
    char body[NOTIFY_BODY_SIZE];
};

enum notify_place { NOTIFY_WEBHOOK, NOTIFY_WITNESS, NOTIFY_TRACES, NOTIFY_PLACES };

enum notify_end {
    NOTIFY_DELIVERED,
    NOTIFY_FAILED,  /* this attempt; another one follows */
    NOTIFY_GAVE_UP, /* after the last attempt, or since the answer forbids another */
    NOTIFY_DROPPED, /* too many wait already */
    NOTIFY_LOST,    /* only in gloveboxd: glovebox-notify ended before it sent them */
    NOTIFY_ENDS,
};

struct notify_outcome {
    uint32_t place; /* enum notify_place */
    uint32_t end;   /* enum notify_end */
    uint32_t attempts;
    uint32_t status; /* of HTTP; 0: there was no answer */
    uint32_t spans;  /* of NOTIFY_TRACES: how many went together */
    uint32_t reserved;
    char id[NOTIFY_ID_SIZE];
    char cause[NOTIFY_CAUSE_SIZE]; /* "" if it was delivered */
};
