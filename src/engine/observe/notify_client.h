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

struct notices;
struct approval;

/* Takes `socket`. `has_webhook`: glovebox-notify was started with one. */
int notices_open(uv_loop_t *loop, int socket, bool has_webhook, struct notices **ret_notices,
                 error *err);
void notices_leave(struct notices *notices); /* the loop ends; NULL: nothing */
void notices_close(struct notices *notices); /* after the loop, and after the last checkpoint */

/* It was "requested", "decided" or has "expired"; the event's type is "approval." and that word.
 * `notices` NULL: nobody is told. */
void notices_approval(struct notices *notices, const char *word, const struct approval *approval);

/* As the witness of a ledger: `notices` may be NULL. */
void notices_checkpoint(struct notices *notices, const char *text, size_t size);
