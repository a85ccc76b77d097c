/* service_metrics.c - see service_metrics.h. */
#include "engine/service/service_metrics.h"

#include "base/clock.h"
#include "base/table.h"
#include "engine/network/traffic_stats.h"
#include "engine/observe/metrics.h"
#include "engine/observe/metrics_limits.h"
#include "engine/run/queue.h"

#include <malloc.h>

void service_count_request(unsigned status_class, uint64_t body_bytes)
{
    metric_add(METRIC_REQUESTS, status_class, 1);
    metric_add(METRIC_REQUEST_BYTES, 0, body_bytes);
}

static void look(const struct service *service, const struct transport_figures *figures)
{
    const struct runs *runs = service->runs;
    const struct pool *pool = runs->pool;
    const struct blob_usage *blobs = blobs_usage(service->blobs);
    static int64_t began_ms;
    uint64_t sets = 0;
    if (began_ms == 0)
        began_ms = wall_clock_ms() - (now_ms() - figures->began_ms);
    for (size_t i = 0; i < service->templates->count; i++)
        sets += service->templates->list[i].set_count;
    const struct {
        enum metric metric;
        uint64_t value;
    } gauges[] = {
        { METRIC_CONNECTIONS, figures->connections },
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

void service_write_metrics(const struct service *service, const struct transport_figures *figures,
                           struct bytes *out)
{
    look(service, figures);
    metrics_write(out);
    limit_counts_write(out);
    traffic_write_metrics(service->traffic, out);
}
