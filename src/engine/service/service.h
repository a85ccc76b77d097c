/* service.h - all operations that doors offer: a door translates its protocol into calls of
 * engine/service and their results back, and decides nothing. Nothing here knows of HTTP or of JSON
 * on a connection. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct account;
struct client_claim;

/* Results of reading from a stream when there are no bytes. */
enum flow_end {
    FLOW_LATER = 0, /* nothing yet: the waker will be called */
    FLOW_END = -1,
    FLOW_BROKEN = -2, /* it ended before its end */
};

/* The caller, for any protocol. */
struct caller {
    struct account *account; /* NULL: none was identified, and none is needed */
    int64_t expires_s; /* of this token, since 1970 (another token of the same subject has its own);
                          0: never */
    const char *request_id;           /* for logs, results and receipts; borrowed for the call */
    const struct client_claim *claim; /* for receipts; NULL: none; borrowed likewise */
};

/* Is called when a wait may be over. */
struct waker {
    void (*woken)(void *context);
    void *context;
};

/* The parts of gloveboxd. daemon/main.c fills it in before it opens the doors. */
struct service {
    struct accounts *accounts;
    bool tcp_needs_no_key;    /* as the operator configured */
    const char *approval_url; /* URL of the page for decisions, with {id}; "" or NULL: none */
    struct runs *runs;
    struct sessions *sessions;
    struct policies *policies;
    struct templates *templates;
    struct blob_store *blobs;
    struct idempotency *idempotency;
    struct lost_runs *lost_runs; /* NULL: runs of earlier daemons are unknown */
    struct receipts *receipts;
    struct approvals *approvals;
    struct processes *processes;
    struct traffic *traffic;
};
