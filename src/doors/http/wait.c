/* wait.c - suspends an exchange until it is woken, its deadline, or its peer hangs up. */
#include "base/clock.h"
#include "doors/http/http_internal.h"

#include <microhttpd.h>
#include <stdlib.h>

static void on_watch_closed(uv_handle_t *handle)
{
    free(handle);
}

void exchange_stop_watching(struct exchange *exchange)
{
    if (!exchange->watch)
        return;
    exchange->watch->data = NULL;
    uv_close((uv_handle_t *) exchange->watch, on_watch_closed);
    exchange->watch = NULL;
}

static void on_hang_up(uv_poll_t *poll, int status, int events)
{
    struct exchange *exchange = poll->data;
    if (!exchange || (status >= 0 && !(events & UV_DISCONNECT)))
        return;
    exchange->is_gone = true;
    exchange_stop_watching(exchange);
    exchange_wake(exchange);
}

/* libmicrohttpd does not watch a suspended connection, so we watch for its end. */
static void watch_peer(struct exchange *exchange)
{
    const struct connection *connection = connection_of(exchange->connection);
    if (exchange->watch || exchange->is_gone || !connection || connection->fd < 0)
        return;
    uv_poll_t *watch = calloc(1, sizeof *watch);
    if (!watch)
        return;
    if (uv_poll_init(exchange->http->loop, watch, connection->fd) < 0) {
        free(watch);
        return;
    }
    watch->data = exchange;
    exchange->watch = watch;
    (void) uv_poll_start(watch, UV_DISCONNECT, on_hang_up);
}

void exchange_wait(struct exchange *exchange)
{
    exchange_wait_until(exchange, (deadline){ 0 });
}

static void on_alarm(uv_timer_t *timer);

static void set_alarm(struct http *http, deadline at)
{
    if (http->alarm_at.at_ms != 0 && http->alarm_at.at_ms <= at.at_ms)
        return;
    http->alarm_at = at;
    uv_update_time(http->loop);
    (void) uv_timer_start(&http->alarm, on_alarm, (uint64_t) deadline_left_ms(at), 0);
}

static void on_alarm(uv_timer_t *timer)
{
    struct http *http = timer->data;
    http->alarm_at = (deadline){ 0 };
    for (struct connection *connection = http->connections; connection;
         connection = connection->next) {
        struct exchange *exchange = connection->exchange;
        if (!exchange || !exchange->is_waiting || exchange->wake_at.at_ms == 0)
            continue;
        if (deadline_has_passed(exchange->wake_at))
            exchange_wake(exchange);
        else
            set_alarm(http, exchange->wake_at);
    }
}

void exchange_wait_until(struct exchange *exchange, deadline end)
{
    if (exchange->is_waiting || exchange->http->is_closing)
        return; /* libmicrohttpd aborts if it is stopped with a suspended connection */
    exchange->is_waiting = true;
    exchange->wake_at = end;
    if (end.at_ms != 0)
        set_alarm(exchange->http, end);
    watch_peer(exchange);
    MHD_suspend_connection(exchange->connection);
}

void exchange_wake(void *context)
{
    struct exchange *exchange = context;
    if (!exchange->is_waiting)
        return;
    exchange->is_waiting = false;
    exchange->http->is_woken = true;
    MHD_resume_connection(exchange->connection);
}
