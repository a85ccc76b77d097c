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
