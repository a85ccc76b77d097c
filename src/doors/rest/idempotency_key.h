/* idempotency_key.h - Idempotency-Key: what a request has begun is begun once, however often it is
 * sent. */
#pragma once

#include "doors/rest/rest.h"
#include "engine/service/service_orders.h"

#include <json.h>

/* The order that a request is; `json` is its body, borrowed; NULL: it has none. */
void exchange_order(const struct exchange *exchange, struct json_object *json,
                    struct order *ret_order);

/* Says in the header of the answer that it is that of the request before, or when to ask again. */
void exchange_answer_order(struct exchange *exchange, const struct order *order);

struct once {
    struct order order;
    struct {
        char id[ORDER_ID_SIZE];
        bool is_of_earlier;
    } known;
};

enum { ONCE_NEW = ORDER_NEW, ONCE_KNOWN = ORDER_KNOWN };

/* Looks the request up. Gives  once->known with ONCE_KNOWN. `json` is its body, borrowed; NULL:
 * it has none. Fails  as idempotency_check_key() and idempotency_find(). */
int once_find(struct exchange *exchange, struct json_object *json, struct once *once, error *err);

/* Notes that it is about to begin what has this id; without a key it does nothing.
 * Fails  as idempotency_keep(): then it must not begin. */
int once_keep(struct exchange *exchange, struct once *once, const char *id, error *err);
void once_drop(struct exchange *exchange, const struct once *once); /* it was refused */

/* The answer is that of the request before. */
void once_say_replayed(struct exchange *exchange);
int once_fail_forgotten(const struct once *once, error *err);
