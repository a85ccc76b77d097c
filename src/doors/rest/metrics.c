/* metrics.c - /metrics: what is counted as it happens, and what is looked up when it is asked for.
 */
#include "engine/observe/metrics.h"
#include "engine/observe/metrics_limits.h"

#include "base/clock.h"
#include "base/table.h"
#include "doors/rest/rest.h"

#include <malloc.h>
#include <microhttpd.h>

void metrics_request_ended(const struct exchange *exchange)
{
    metric_add(METRIC_REQUESTS, exchange->status / 100, 1);
    metric_add(METRIC_REQUEST_BYTES, 0, exchange->body_bytes);
}

static void look(const struct exchange *exchange)
{
    const struct service *service = exchange->service;
    const struct runs *runs = service->runs;
    const struct pool *pool = runs->pool;
    const struct blob_usage *blobs = blobs_usage(service->blobs);
    static int64_t began_ms;
    uint64_t sets = 0;
    if (began_ms == 0)
        began_ms = wall_clock_ms() - (now_ms() - http_began_ms(exchange->http));
    for (size_t i = 0; i < service->templates->count; i++)
        sets += service->templates->list[i].set_count;
    const struct {
        enum metric metric;
        uint64_t value;
    } gauges[] = {
        { METRIC_CONNECTIONS, http_connection_count(exchange->http) },
        { METRIC_SLOTS, pool->slots },
        { METRIC_SLOTS_STUCK, pool->stuck },
        { METRIC_SLOTS_IN_USE, pool->in_use },
        { METRIC_IDLE, pool->idle },
        { METRIC_BUILDING, pool->building },
        { METRIC_DRAINING, pool->draining },
        { METRIC_ACTIVE, runs->active },
        { METRIC_QUEUED, runs->queued },
        { METRIC_KEPT, runs->kept },
        { METRIC_KEPT_BYTES, runs->kept_bytes },
        { METRIC_ARTIFACT_BYTES_KEPT, blobs->bytes },
        { METRIC_ARTIFACTS_KEPT, blobs->count },
        { METRIC_ARTIFACTS_EVICTED, blobs->evicted },
        { METRIC_ARTIFACTS_DAMAGED, blobs->damaged },
        { METRIC_ZYGOTES, sets },
        { METRIC_HEAP_BYTES, mallinfo2().uordblks },
        { METRIC_START_TIME, (uint64_t) began_ms / 1000 },
    };
    for_each(gauge, gauges)
        metric_set(gauge->metric, 0, gauge->value);
}

static void get_metrics(struct exchange *exchange)
{
    struct bytes text = { 0 };
    look(exchange);
    metrics_write(&text);
    limit_counts_write(&text);
    traffic_write_metrics(((const struct service *) exchange->service)->traffic, &text);
    exchange_answer_as(exchange, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", &text);
}

static const struct route rows[] = {
    /* clang-format off */
    { "GET", "/metrics", BODY_NONE, get_metrics, "Counters and gauges in the text format of Prometheus", .mime = "text/plain" },
    /* clang-format on */
};

const struct route_table metrics_routes = { "metrics", rows, COUNT_OF(rows), RIGHT_AUDIT };
