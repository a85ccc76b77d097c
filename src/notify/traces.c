/* traces.c - OTLP over HTTP with JSON: spans of runs that ended within a second are one batch. What
 * the collector does not accept in time is dropped and counted; no run waits for it. */
#include "notify/notify.h"

enum { TOGETHER_MAX = 64, WAITS_MS = 1000 };

static void on_collected(uv_timer_t *timer)
{
    traces_flush(timer->data);
}

int traces_open(struct notify *notify, error *err)
{
    notify->collecting.data = notify;
    return uv_timer_init(&notify->loop, &notify->collecting) < 0
               ? fail(err, ERR_SYSTEM, "make a timer for traces")
               : 0;
}

void traces_add(struct notify *notify, const struct notify_event *event)
{
    if (notify->span_count > 0)
        bytes_add(&notify->spans, ",", 1);
    bytes_add(&notify->spans, event->body, event->size);
    if (++notify->span_count >= TOGETHER_MAX)
        traces_flush(notify);
    else if (notify->span_count == 1)
        (void) uv_timer_start(&notify->collecting, on_collected, WAITS_MS, 0);
}

void traces_flush(struct notify *notify)
{
    static const char head[] =
        "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":"
        "{\"stringValue\":\"glovebox\"}},{\"key\":\"service.version\",\"value\":{\"stringValue\":"
        "\"" GLOVEBOX_VERSION
        "\"}}]},\"scopeSpans\":[{\"scope\":{\"name\":\"glovebox\"},\"spans\":[";
    struct bytes body = { 0 };
    unsigned spans = notify->span_count;
    (void) uv_timer_stop(&notify->collecting);
    if (spans == 0)
        return;
    bytes_add_text(&body, head);
    bytes_add(&body, notify->spans.data, notify->spans.size);
    bytes_add_text(&body, "]}]}]}");
    body.failed = body.failed || notify->spans.failed;
    bytes_done(&notify->spans);
    notify->spans = (struct bytes){ 0 };
    notify->span_count = 0;
    deliver_spans(notify, &body, spans);
}
