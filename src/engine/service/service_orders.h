/* service_orders.h - idempotency keys: what an order has begun (a run, a cell, a session, a
 * process) is begun once, however often the order is sent. */
#pragma once

#include "base/error.h"
#include "engine/service/service.h"

#include <stdint.h>

enum { ORDER_DIGEST_SIZE = 32, ORDER_ID_SIZE = 37 };

/* An order with a key. Zero-filled it has none, and nothing of it is remembered. */
struct order {
    const char *key;                         /* as the caller chose it; borrowed */
    unsigned char digest[ORDER_DIGEST_SIZE]; /* of all that makes two orders the same; the door's */

    /* set by service_order_find() */
    bool is_replayed;       /* what is answered was begun by an order before */
    bool is_elsewhere;      /* another daemon still has the keys: try again in a second */
    char id[ORDER_ID_SIZE]; /* of what it has begun before */
    bool is_of_earlier;     /* a daemon before this one was to begin it */
    bool is_of_boot;        /* the machine has not been started again since */
    uint64_t log_size;      /* records that the log of receipts had then */
};

enum { ORDER_NEW = 0, ORDER_KNOWN = 1 };

/* Gives  order->id with ORDER_KNOWN.
 * Fails  ERR_BAD_REQUEST  the key is empty, too long, or not plain ASCII
 *        ERR_CONFLICT     the key came before with another order
 *        ERR_UNAVAILABLE  the keys are elsewhere (order->is_elsewhere), or their disk fails */
int service_order_find(struct service *service, const struct caller *caller, struct order *order,
                       error *err);

/* Notes what is about to begin: whatever ends the daemon, nothing is begun twice. Without a key it
 * does nothing. Fails  as idempotency_keep(): then it must not begin. */
int service_order_keep(struct service *service, const struct caller *caller,
                       const struct order *order, const char *id, error *err);
void service_order_drop(struct service *service, const struct order *order); /* it was refused */

/* What it has begun never was: it may begin now. */
bool service_order_never_began(const struct service *service, const struct order *order);

/* Fails  ERR_CONFLICT  what it has begun is over and forgotten. */
int order_fail_forgotten(const struct order *order, error *err);
