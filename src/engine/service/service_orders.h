/* service_orders.h - idempotency keys: an order (for a run, cell, session or process) begins once,
 * however often it is sent. */
#pragma once

#include "base/error.h"
#include "engine/service/service.h"

#include <stdint.h>

enum { ORDER_DIGEST_SIZE = 32, ORDER_ID_SIZE = 37 };

/* An order with a key. Zero-filled it has none, and is not remembered. */
struct order {
    const char *key;                         /* as the caller sent it; borrowed */
    unsigned char digest[ORDER_DIGEST_SIZE]; /* of what makes two orders equal; by the door */

    /* set by service_order_find() */
    bool is_replayed;       /* an earlier order with this key has begun it */
    bool is_elsewhere;      /* another daemon still owns the keys: try again in a second */
    char id[ORDER_ID_SIZE]; /* of what it has begun */
    bool is_of_earlier;     /* an earlier daemon was to begin it */
    bool is_of_boot;        /* the machine has not rebooted since */
    uint64_t log_size;      /* records in the log of receipts then */
};

enum { ORDER_NEW = 0, ORDER_KNOWN = 1 };

/* Gives  order->id with ORDER_KNOWN. Fails  ERR_BAD_REQUEST  the key is empty, too long, or not
 * plain ASCII; ERR_CONFLICT  the key was used with another order; ERR_UNAVAILABLE  another daemon
 * owns the keys (order->is_elsewhere), or their disk fails */
int service_order_find(struct service *service, const struct caller *caller, struct order *order,
                       error *err);

/* Notes what is about to begin, so that it begins only once even if the daemon dies. Does nothing
 * without a key. Fails  as idempotency_keep(): it must not begin. */
int service_order_keep(struct service *service, const struct caller *caller,
                       const struct order *order, const char *id, error *err);
void service_order_drop(struct service *service, const struct order *order); /* after a refusal */

/* What it was to begin never began: it may begin now. */
bool service_order_never_began(const struct service *service, const struct order *order);

/* Fails  ERR_CONFLICT  what it has begun has ended, and its result is no longer kept. */
int order_fail_forgotten(const struct order *order, error *err);
