/* idle_exit.c - a timer that checks every second and sends "idle" to the parent. */
#include "daemon/idle_exit.h"

#include "base/clock.h"
#include "engine/store/idempotency.h"

#include <string.h>
#include <sys/socket.h>

enum { LOOK_MS = 1000 };

/* Sent every second until the parent acts: it may be busy with a reload. */
static void on_timer(uv_timer_t *timer)
{
    static const char word[] = "idle";
    struct idle_exit *idle = timer->data;
    int64_t now = now_ms();
    if (idle->is_used())
        idle->since_ms = now;
    else if (idle->used_ms() > idle->since_ms)
        idle->since_ms = idle->used_ms();
    bool is_awaited = idempotency_are_awaited(idle->idempotency);
    if (idle->seconds > 0 &&
        now - idle->since_ms >= (is_awaited ? LOOK_MS : (int64_t) idle->seconds * 1000))
        (void) !send(idle->socket, word, strlen(word), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void idle_exit_open(struct idle_exit *idle, uv_loop_t *loop)
{
    idle->since_ms = now_ms();
    idle->is_open = true;
    (void) uv_timer_init(loop, &idle->timer);
    idle->timer.data = idle;
    (void) uv_timer_start(&idle->timer, on_timer, LOOK_MS, LOOK_MS);
    uv_unref((uv_handle_t *) &idle->timer);
}

void idle_exit_close(struct idle_exit *idle)
{
    if (idle->is_open)
        uv_close((uv_handle_t *) &idle->timer, NULL);
    idle->is_open = false;
}
