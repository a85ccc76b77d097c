/* notify_client.h - what this daemon tells others of: approvals and checkpoints. It connects to
 * nobody: glovebox-notify does, which is handed everything over one socket (contract/notify.h).
 *
 * Nothing here ever waits or fails for its caller: what cannot be handed over is counted, and
 * stands in the service's log. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

struct notify_client;
struct approval;

/* Takes `socket`. `has_webhook`: glovebox-notify was started with one. */
int notify_client_open(uv_loop_t *loop, int socket, bool has_webhook,
                       struct notify_client **ret_notices, error *err);
void notify_client_leave(struct notify_client *notify_client); /* the loop ends; NULL: nothing */
void notify_client_close(
    struct notify_client *notify_client); /* after the loop, and after the last checkpoint */

/* It was "requested", "decided" or has "expired"; the event's type is "approval." and that word.
 * `notices` NULL: nobody is told. */
void notify_client_approval(struct notify_client *notify_client, const char *word,
                            const struct approval *approval);

/* As the witness of a ledger: `notices` may be NULL. */
void notify_client_checkpoint(struct notify_client *notify_client, const char *text, size_t size);
