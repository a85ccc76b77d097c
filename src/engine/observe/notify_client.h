/* notify_client.h - what this daemon tells others of: approvals and checkpoints. It connects to no
 * other host: glovebox-notify does, which is handed everything over one socket (contract/notify.h).
 *
 * Nothing here ever waits or fails for its caller: what cannot be handed over is counted, and
 * stands in the service's log. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

struct notify_client;

/* What glovebox-notify was started with. */
struct notify_places {
    bool has_webhook, has_traces;
};

/* Takes `socket`. With traces notify_client_span() has a receiver, until notify_client_close(). */
int notify_client_open(uv_loop_t *loop, int socket, const struct notify_places *places,
                       struct notify_client **ret_notices, error *err);
void notify_client_leave(struct notify_client *notify_client); /* the loop ends; NULL: nothing */
void notify_client_close(
    struct notify_client *notify_client); /* after the loop, and after the last checkpoint */

/* Sends one event to the webhook: JSON with "type", "timestamp" and "data". `id` is the same for an
 * event that is sent twice, and has no full stop in it: that divides what is signed. */
void notify_client_event(struct notify_client *notify_client, const char *id,
                         const struct bytes *body);

/* As the witness of a ledger: `notices` may be NULL. */
void notify_client_checkpoint(struct notify_client *notify_client, const char *text, size_t size);

/* Sends a span, as JSON of OTLP, if there is a collector. As with the log, the caller
 * does not need the client. */
bool notify_client_has_traces(void);
void notify_client_span(const struct bytes *span);
