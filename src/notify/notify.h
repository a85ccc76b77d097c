/* notify.h - the parts of glovebox-notify: destinations, waiting deliveries, signatures.
 *
 *   Threads  one. */
#pragma once

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/host_name.h"
#include "contract/notify.h"
#include "outbound/http_transfers.h"
#include "outbound/resolver.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

enum { URL_MAX = 512, SECRETS_MAX = 2, SECRET_MAX = 64, SIGNED_MAX = 160 };

/* --- place.c: destinations -------------------------------------------------------------------- */

struct place {
    char url[URL_MAX]; /* "": not configured */
    char host[HOST_NAME_SIZE];
    uint16_t port;
    unsigned known_count; /* addresses in the URL itself, which need no resolver */
    struct in6_addr known[2];
};

/* Reads "https://host:port/path?query". Plain http is accepted only for this host. Fails
 * ERR_BAD_REQUEST  `what` is named. */
int place_read(const char *what, const char *text, struct place *ret_place, error *err);

/* --- sign.c: https://www.standardwebhooks.com ------------------------------------------------- */

struct webhook_secrets {
    unsigned count; /* two while a secret is being replaced: both sign */
    struct {
        size_t size;
        unsigned char bytes[SECRET_MAX];
    } list[SECRETS_MAX];
};

/* Reads lines "whsec_BASE64" of 24 to 64 bytes; empty lines and those that begin with # are
 * skipped. Fails  ERR_BAD_REQUEST  `path` is named; the message never contains a secret. */
int webhook_secrets_read(const char *text, size_t size, const char *path,
                         struct webhook_secrets *ret_secrets, error *err);

/* Gives  "v1,BASE64" for each secret, separated by blanks. */
void webhook_sign(const struct webhook_secrets *secrets, const struct notify_event *event,
                  int64_t time_s, char ret_text[SIGNED_MAX]);

/* --- delivery.c: attempts, until one succeeds or the last fails ------------------------------- */

struct notify {
    uv_loop_t loop;
    uv_poll_t daemon_poll;
    int daemon;
    struct transfers *transfers;
    struct resolver *resolver;
    struct place places[NOTIFY_PLACES];
    struct webhook_secrets secrets;
    unsigned attempts_max; /* of one webhook */
    uv_timer_t turn;       /* starts the next deliveries */
    struct delivery *deliveries;
    unsigned waiting, in_flight;  /* of webhooks and traces */
    struct bytes spans;           /* waiting to be sent together, separated by commas */
    unsigned span_count, batches; /* batches: deliveries of NOTIFY_TRACES */
    bool has_batch_in_flight;
    uv_timer_t collecting;
    struct delivery *witness; /* NULL: no checkpoint is to be sent */
    bool is_leaving;          /* gloveboxd has gone */
    deadline end;             /* when it stops waiting for deliveries */
    uv_timer_t leaving;
};

/* Queues an event; one that cannot be queued is reported as dropped at once. */
void deliver(struct notify *notify, enum notify_place place, const struct notify_event *event);

/* The same for a batch of spans; frees or keeps the bytes. */
void deliver_spans(struct notify *notify, struct bytes *body, unsigned spans);

/* Before the end: starts what waits for its first attempt, and sends the last checkpoint now. */
void deliveries_hurry(struct notify *notify);
bool deliveries_are_done(const struct notify *notify); /* nothing is under way */

void delivery_transfer_ended(void *context, CURLcode result);

/* --- traces.c: spans, many in one request ----------------------------------------------------- */

int traces_open(struct notify *notify, error *err);
void traces_add(struct notify *notify, const struct notify_event *event);
void traces_flush(struct notify *notify); /* sends an incomplete batch now */

/* --- link.c ----------------------------------------------------------------------------------- */

int link_open(struct notify *notify, int socket, error *err);
void link_tell(struct notify *notify, const struct notify_outcome *outcome);
