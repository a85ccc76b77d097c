/* takeover.h - two daemons for a moment share a state folder, when one replaces the other.
 * Idempotency keys and the list of sessions belong to one at a time: until the old daemon has
 * ended, the new one refuses requests with a key, and writes its list of sessions later. */
#pragma once

#include <uv.h>

struct service;

struct takeover {
    struct service *service; /* borrowed */
    uv_timer_t timer;        /* runs while the old daemon owns something */
};

void takeover_open(struct takeover *takeover, uv_loop_t *loop, struct service *service);
void takeover_close(struct takeover *takeover);
