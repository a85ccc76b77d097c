/* idempotency_key.h - the header Idempotency-Key: a request begins something only once, however
 * often it is sent. */
#pragma once

#include "doors/rest/rest.h"
#include "engine/service/service_orders.h"

#include <json.h>

/* The order for a request; `json` is its body, borrowed; NULL: none. */
void exchange_order(const struct exchange *exchange, struct json_object *json,
                    struct order *ret_order);

/* Adds a header if the answer is that of an earlier request, or says when to try again. */
void exchange_answer_order(struct exchange *exchange, const struct order *order);
