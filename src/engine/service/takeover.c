/* takeover.c - see takeover.h. The kernel releases a lock when its owner has ended, and notifies no
 * other process: it is tried regularly. */
#include "engine/service/takeover.h"

#include "engine/audit/audit_log.h"
#include "engine/observe/log.h"
#include "engine/run/lost_runs.h"
#include "engine/service/service.h"
#include "engine/session/session_registry.h"
#include "engine/store/idempotency.h"

enum { LOOK_MS = 200, AFTER_FAILURE_MS = 5000 };

/* Records what the previous daemon left open, before any of its keys is answered. */
static int read_past(struct service *service, error *err)
{
    struct lost_runs *lost_runs;
    if (receipts_recover(service->receipts, err) < 0 ||
        lost_runs_open(service->receipts, &lost_runs, err) < 0)
        return -1;
    lost_runs_free(service->lost_runs);
    service->lost_runs = lost_runs;
    return 0;
}

static int take_keys(struct service *service, error *err)
{
    int taken = idempotency_take_over(service->idempotency, err);
    if (taken == 0 && (taken = read_past(service, err)) < 0)
        idempotency_give_back(service->idempotency);
    return taken;
}

static void on_timer(uv_timer_t *timer)
{
    struct takeover *takeover = timer->data;
    struct service *service = takeover->service;
    error err;
    bool had_keys = !idempotency_are_elsewhere(service->idempotency);
    int keys = had_keys ? 0 : take_keys(service, &err);
    if (keys < 0)
        log_event(STATE_TAKEOVER_FAILED, TEXT("cause", err.text));
    else if (keys == 0 && !had_keys)
        log_event(STATE_TAKEN_OVER,
                  TEXT("cause", "the other daemon of this state folder has ended"));
    int sessions = sessions_take_over(service->sessions, &err);
    if (sessions < 0)
        log_event(SESSIONS_TAKEOVER_FAILED, TEXT("cause", err.text));
    if (keys < 0 || sessions < 0)
        (void) uv_timer_start(timer, on_timer, AFTER_FAILURE_MS, LOOK_MS);
    if (keys == 0 && sessions == 0)
        (void) uv_timer_stop(timer);
}

void takeover_open(struct takeover *takeover, uv_loop_t *loop, struct service *service)
{
    takeover->service = service;
    takeover->timer.data = takeover;
    (void) uv_timer_init(loop, &takeover->timer);
    uv_unref((uv_handle_t *) &takeover->timer);
    (void) uv_timer_start(&takeover->timer, on_timer, 0, LOOK_MS);
}

void takeover_close(struct takeover *takeover)
{
    if (takeover->service)
        uv_close((uv_handle_t *) &takeover->timer, NULL);
}
