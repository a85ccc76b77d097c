/* service.h - everything that a door may ask of glovebox: a door translates its protocol into the
 * calls of engine/service and their answers back, and decides nothing. Nothing here knows HTTP or
 * JSON on a wire. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct account;
struct client_claim;

/* What taking from a stream gives when it does not give anything. */
enum flow_end {
    FLOW_LATER = 0, /* the waker follows */
    FLOW_END = -1,
    FLOW_BROKEN = -2, /* there is more, and it does not come */
};

/* The caller, in any protocol. */
struct caller {
    struct account *account; /* NULL: no account has been identified, and nothing needs it */
    int64_t expires_s;       /* of its token, since 1970: another of the same subject lasts as long
                                as it does; 0: never */
    const char *request_id;  /* of logs, results and receipts; borrowed for the call */
    const struct client_claim *claim; /* of receipts; NULL: none; borrowed likewise */
};

/* What is called when a wait may be over. */
struct waker {
    void (*woken)(void *context);
    void *context;
};

/* The parts of gloveboxd. daemon/main.c fills it in before the first door opens. */
struct service {
    struct accounts *accounts;
    bool tcp_needs_no_key;    /* the operator said so */
    const char *approval_url; /* of the page that decides, with {id}; "" or NULL: there is none */
    struct runs *runs;
    struct sessions *sessions;
    struct policies *policies;
    struct templates *templates;
    struct blob_store *blobs;
    struct idempotency *idempotency;
    struct lost_runs *lost_runs; /* NULL: nothing is known of daemons before */
    struct receipts *receipts;
    struct approvals *approvals;
    struct processes *processes;
    struct traffic *traffic;
};
