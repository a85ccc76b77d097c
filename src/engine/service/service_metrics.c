/* service_metrics.c - see service_metrics.h. */
#include "engine/service/service_metrics.h"

#include "base/clock.h"
#include "base/table.h"
#include "engine/audit/audit_log.h"
#include "engine/catalog/import_counts.h"
#include "engine/network/traffic_stats.h"
#include "engine/observe/metrics.h"
#include "engine/observe/metrics_limits.h"
#include "engine/run/queue.h"
#include "engine/service/service_status.h"
#include "engine/session/session_registry.h"

#include <malloc.h>
#include <stdio.h>

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
    for (uint32_t i = 0; i < SPAWN_TEMPLATES_MAX; i++)
        sets += service->templates->list[i] ? service->templates->list[i]->set_count : 0;
    const struct {
        enum metric metric;
        uint64_t value;
    } gauges[] = {
        { METRIC_CONNECTIONS, figures->connections },
        { METRIC_SLOTS, pool->slots },
        { METRIC_SLOTS_STUCK, pool->stuck },
        { METRIC_SLOTS_IN_USE, pool->in_use },
        { METRIC_IDLE, pool->idle },
        { METRIC_TENANTS_IDLE, processor_shares_idle(&pool->shares) },
        { METRIC_BUILDING, pool->building },
        { METRIC_DRAINING, pool->draining },
        { METRIC_ACTIVE, runs->active },
        { METRIC_QUEUED, runs->queued },
        { METRIC_DISK_FREE, runs->receipts ? receipts_free_bytes(runs->receipts) : 0 },
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
    for (enum session_state state = SESSION_STARTING; state < SESSION_ENDED; state++)
        metric_set(METRIC_SESSIONS, state, sessions_count(service->sessions, state));
}

struct key_writer {
    enum metric metric;
    struct bytes *out;
};

static uint64_t value_of_key(enum metric metric, const struct key_status *key)
{
    const struct {
        enum metric metric;
        uint64_t value;
    } values[] = {
        { METRIC_KEY_RUNS, key->runs },         { METRIC_KEY_REFUSED, key->refused },
        { METRIC_KEY_CPU, key->cpu_ms * 1000 }, { METRIC_KEY_QUEUED, key->queued_us },
        { METRIC_KEY_ACTIVE, key->active },     { METRIC_KEY_SESSIONS, key->sessions },
    };
    for_each(row, values)
        if (row->metric == metric)
            return row->value;
    return 0;
}

/* Escapes the value of a label for Prometheus; a tenant's name is any text. */
static void escape_label(const char *text, char *ret_text, size_t size)
{
    size_t used = 0;
    for (; *text && used + 3 < size; text++) {
        if (*text == '\\' || *text == '"' || *text == '\n')
            ret_text[used++] = '\\';
        ret_text[used++] = (char) (*text == '\n' ? 'n' : *text);
    }
    ret_text[used] = '\0';
}

static void write_key(void *context, const struct key_status *key)
{
    const struct key_writer *writer = context;
    char tenant[2 * API_KEY_NAME_SIZE], label[sizeof tenant + 64];
    escape_label(key->tenant ? key->tenant : "", tenant, sizeof tenant);
    (void) snprintf(label, sizeof label, "key=\"%s\",tenant=\"%s\"", key->id ? key->id : "owner",
                    tenant);
    metric_write_value(writer->metric, label, value_of_key(writer->metric, key), writer->out);
}

/* One series for each key that was used since the daemon began. */
static void write_keys(const struct service *service, struct bytes *out)
{
    for (enum metric metric = METRIC_KEY_RUNS; metric <= METRIC_KEY_SESSIONS; metric++) {
        struct key_writer writer = { metric, out };
        metric_write_head(metric, out);
        service_each_key(service, write_key, &writer);
    }
}

void service_write_metrics(const struct service *service, const struct transport_figures *figures,
                           struct bytes *out)
{
    look(service, figures);
    metrics_write(out);
    limit_counts_write(out);
    import_counts_write(service->templates, out);
    write_keys(service, out);
    traffic_write_metrics(service->traffic, out);
}
