/* idempotency_key.c - see idempotency_key.h. The key is stored before the run, session or process
 * begins, so that it begins only once even if the daemon dies. */
#include "doors/rest/idempotency_key.h"

#include <sodium.h>
#include <string.h>

/* Equal JSON for the same path is the same request, whatever its blanks. */
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
