/* session_ready.c - see session_ready.h. */
#include "doors/rest/session_ready.h"

static void forget(struct exchange *exchange)
{
    session_wait_done(exchange->user, true);
    exchange->user = NULL;
    exchange->closed = NULL;
}

bool session_is_early(struct exchange *exchange)
{
    const struct waker waker = { .woken = exchange_wake, .context = exchange };
    enum awaits awaits = exchange->route->awaits;
    if (!exchange->caller.account || awaits == AWAITS_NOTHING)
        return false; /* a caller without a key has a token, which its route checks */
    if (exchange->user)
        forget(exchange);
    exchange->user = service_session_await(exchange->service, &exchange->caller,
                                           exchange->parameters[0], awaits, &waker);
    if (exchange->user)
        exchange->closed = forget;
    return exchange->user != NULL;
}
