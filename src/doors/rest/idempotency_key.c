/* idempotency_key.c - see idempotency_key.h. The key is noted before what it names can begin:
 * whatever ends the daemon, nothing runs twice. */
#include "doors/rest/idempotency_key.h"

#include <sodium.h>
#include <string.h>

/* The same JSON at the same place is the same request, however it is spaced. */
static void digest_request(const struct exchange *exchange, struct json_object *json,
                           unsigned char digest[ORDER_DIGEST_SIZE])
{
    crypto_generichash_state state;
    size_t size = 0;
    const char *text =
        json ? json_object_to_json_string_length(json, JSON_C_TO_STRING_PLAIN, &size) : "";
    const char *place = exchange->route->path;
    (void) crypto_generichash_init(&state, NULL, 0, ORDER_DIGEST_SIZE);
    (void) crypto_generichash_update(&state, (const unsigned char *) place, strlen(place) + 1);
    for (size_t i = 0; i < ROUTE_PARAMETERS_MAX && exchange->parameters[i]; i++)
        (void) crypto_generichash_update(&state, (const unsigned char *) exchange->parameters[i],
                                         strlen(exchange->parameters[i]) + 1);
    (void) crypto_generichash_update(&state, (const unsigned char *) text, text ? size : 0);
    (void) crypto_generichash_final(&state, digest, ORDER_DIGEST_SIZE);
}

void exchange_order(const struct exchange *exchange, struct json_object *json,
                    struct order *ret_order)
{
    *ret_order = (struct order){ .key = exchange_header(exchange, "Idempotency-Key") };
    if (ret_order->key)
        digest_request(exchange, json, ret_order->digest);
}

void exchange_answer_order(struct exchange *exchange, const struct order *order)
{
    if (order->is_replayed)
        exchange_add_header(exchange, "Idempotency-Replayed", "true");
    if (order->is_elsewhere) {
        exchange->is_retryable = true;
        exchange_add_header(exchange, "Retry-After", "1");
    }
}

int once_find(struct exchange *exchange, struct json_object *json, struct once *once, error *err)
{
    exchange_order(exchange, json, &once->order);
    int result = service_order_find(exchange->service, &exchange->caller, &once->order, err);
    memcpy(once->known.id, once->order.id, sizeof once->known.id);
    once->known.is_of_earlier = once->order.is_of_earlier;
    exchange_answer_order(exchange, &once->order);
    return result;
}

int once_keep(struct exchange *exchange, struct once *once, const char *id, error *err)
{
    return service_order_keep(exchange->service, &exchange->caller, &once->order, id, err);
}

void once_drop(struct exchange *exchange, const struct once *once)
{
    service_order_drop(exchange->service, &once->order);
}

void once_say_replayed(struct exchange *exchange)
{
    exchange_add_header(exchange, "Idempotency-Replayed", "true");
}

int once_fail_forgotten(const struct once *once, error *err)
{
    return order_fail_forgotten(&once->order, err);
}
