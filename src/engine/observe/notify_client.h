/* notify_client.h - sends approvals, checkpoints and spans to glovebox-notify, over a socket
 * (contract/notify.h). Only glovebox-notify connects to other hosts.
 *
 * No call waits or fails: what cannot be sent is counted and logged. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

struct notify_client;

/* The destinations that glovebox-notify was started with. */
struct notify_places {
    bool has_webhook, has_traces;
};

/* Takes `socket`. With traces, notify_client_span() uses it until notify_client_close(). */
int notify_client_open(uv_loop_t *loop, int socket, const struct notify_places *places,
                       struct notify_client **ret_notices, error *err);
void notify_client_leave(struct notify_client *notify_client); /* before the loop's end */
/* After the loop, and after the last checkpoint. */
void notify_client_close(struct notify_client *notify_client);

/* Sends one event to the webhook: JSON with "type", "timestamp" and "data". `id` is the same for an
 * event that is sent twice, and has no full stop, which is a separator in the signed text. */
void notify_client_event(struct notify_client *notify_client, const char *id,
                         const struct bytes *body);

/* A ledger's callback for checkpoints: `notices` may be NULL. */
void notify_client_checkpoint(struct notify_client *notify_client, const char *text, size_t size);

/* Sends a span, as JSON of OTLP, if there is a collector. It uses a global client, like the log. */
bool notify_client_has_traces(void);
void notify_client_span(const struct bytes *span);
