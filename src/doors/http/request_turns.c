/* request_turns.c - when a request is served.
 *
 * Requests get a part of each turn of the loop; the others wait for the next turns. The request
 * whose key has used the loop least is next, so that a client with many requests does not hold up
 * those of other keys. */
#include "base/clock.h"
#include "base/list.h"
#include "doors/http/http_internal.h"
#include "engine/service/service_observe.h"

enum { REQUESTS_US = 2000 };

static void begin(struct exchange *exchange)
{
    exchange->has_turn = true;
    exchange->charged_us = service_request_begins(exchange->service, &exchange->caller);
}

bool request_has_turn(struct exchange *exchange)
{
    struct http *http = exchange->http;
    if (exchange->has_turn)
        return true;
    if (!exchange->is_queued) {
        service_request_asks(exchange->service, &exchange->caller);
        if (http->is_closing || (!http->first_queued && http->turn_us < REQUESTS_US)) {
            begin(exchange);
            return true;
        }
        list_append(http->first_queued, exchange, next_queued);
        exchange->is_queued = true;
    }
    exchange_wait(exchange);
    return false;
}

void request_leave_queue(struct exchange *exchange)
{
    if (exchange->is_queued)
        (void) list_remove(exchange->http->first_queued, exchange, next_queued);
    exchange->is_queued = false;
}

/* NULL: none is waiting. */
static struct exchange *find_next(const struct http *http)
{
    struct exchange *next = http->first_queued;
    for (struct exchange *each = next; each; each = each->next_queued)
        if (service_request_is_before(each->service, &each->caller, &next->caller))
            next = each;
    return next;
}

void requests_begin_turn(struct http *http)
{
    int64_t expected_us = 0;
    http->turn_us = 0;
    while (expected_us < REQUESTS_US) {
        struct exchange *next = find_next(http);
        if (!next)
            return;
        request_leave_queue(next);
        begin(next);
        expected_us += next->charged_us;
        exchange_wake(next);
    }
}

void request_serve(struct exchange *exchange)
{
    int64_t began_us = now_us();
    struct service_work_before before =
        service_work_enter(WORK_REQUEST, exchange->route ? exchange->route->path : NULL);
    if (exchange->refusal.code != ERR_NONE)
        exchange_fail(exchange, &exchange->refusal);
    else if (exchange->route)
        exchange->route->serve(exchange);
    else
        exchange_answer_nothing(exchange, MHD_HTTP_NO_CONTENT);
    service_work_leave(before);
    int64_t used_us = now_us() - began_us;
    exchange->http->turn_us += used_us;
    service_request_used(exchange->service, &exchange->caller, exchange->charged_us, used_us);
    exchange->charged_us = 0;
}
