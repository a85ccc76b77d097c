/* status.c - GET /v1/status: the use of the whole daemon, by pool and by key, for `glovebox top`
 * and for operators. It names keys and tenants, so it needs the scope admin. */
#include "base/table.h"
#include "doors/rest/rest.h"
#include "engine/service/service_status.h"
#include "model/limits.h"
#include "model/outcome.h"
#include "json/writer.h"

static void write_warning(void *context, const char *text)
{
    json_string(context, text);
}

static void write_pool(void *context, const struct pool_status *pool)
{
    struct bytes *json = context;
    json_open(json, '{');
    json_string_field(json, "template", pool->template_name);
    if (pool->set >= 0)
        json_number_field(json, "set", pool->set);
    else
        json_null_field(json, "set");
    json_string_field(json, "set_name", pool->set_name);
    json_count_field(json, "tenant", pool->tenant);
    json_count_field(json, "memory_bytes", pool->memory_bytes);
    json_count_field(json, "parked", pool->idle);
    json_count_field(json, "building", pool->building);
    json_count_field(json, "target", pool->target);
    json_count_field(json, "per_second", pool->per_second);
    json_close(json, '}');
}

static void write_key(void *context, const struct key_status *key)
{
    struct bytes *json = context;
    json_open(json, '{');
    json_string_field(json, "id", key->id);
    json_string_field(json, "name", key->id ? key->name : "owner");
    json_string_field(json, "tenant", key->tenant);
    json_count_field(json, "queued", key->queued);
    json_count_field(json, "active", key->active);
    json_count_field(json, "sessions", key->sessions);
    json_count_field(json, "concurrency", key->concurrency);
    json_count_field(json, "runs", key->runs);
    json_count_field(json, "refused", key->refused);
    json_count_field(json, "built", key->built);
    json_count_field(json, "cpu_ms", key->cpu_ms);
    json_count_field(json, "cpu_ms_today", key->cpu_ms_today);
    json_count_field(json, "cpu_seconds_per_day", key->cpu_seconds_per_day);
    json_count_field(json, "log_bytes_today", key->log_bytes_today);
    json_count_field(json, "log_bytes_per_day", key->log_bytes_per_day);
    json_count_field(json, "runs_per_minute", key->runs_per_minute);
    json_open_field(json, "ends", '{');
    for (enum run_status status = 0; status < RUN_STATUSES; status++)
        if (key->ends[status] > 0)
            json_count_field(json, outcome_status_name(status), key->ends[status]);
    json_close(json, '}');
    json_open_field(json, "limit_hits", '{');
    for (enum limit_id id = 0; id < LIMITS; id++)
        if (key->limit_hits[id] > 0)
            json_count_field(json, limit_rows[id].name, key->limit_hits[id]);
    json_close_all(json, "}}");
}

static void get_status(struct exchange *exchange)
{
    struct service_load load;
    service_load(exchange->service, &load);
    error cause;
    bool is_ready = service_check_ready(exchange->service, &cause) == 0;
    struct bytes json = json_begin('{');
    json_string_field(&json, "version", GLOVEBOX_VERSION);
    json_flag_field(&json, "ready", is_ready);
    json_string_field(&json, "cause", is_ready ? NULL : cause.text);
    json_count_field(&json, "slots", load.slots);
    json_count_field(&json, "in_use", load.in_use);
    json_count_field(&json, "parked", load.idle);
    json_count_field(&json, "building", load.building);
    json_count_field(&json, "active", load.active);
    json_count_field(&json, "queued", load.queued);
    json_count_field(&json, "queue", load.queued_max);
    json_count_field(&json, "sessions", load.sessions);
    json_flag_field(&json, "closing", load.is_closing);
    json_open_field(&json, "warnings", '[');
    service_each_warning(exchange->service, write_warning, &json);
    json_close(&json, ']');
    json_open_field(&json, "pools", '[');
    service_each_pool(exchange->service, write_pool, &json);
    json_close(&json, ']');
    json_open_field(&json, "keys", '[');
    service_each_key(exchange->service, write_key, &json);
    exchange_end_json(exchange, &json, "]}");
}

static const struct route rows[] = {
    { "GET", "/v1/status", BODY_NONE, get_status,
      "How the daemon is used: pools, keys, limits that were hit", .gives = "Status",
      .operation = "getStatus" },
};
const struct route_table status_routes = { "status", rows, COUNT_OF(rows), RIGHT_ADMIN,
                                           .text = "How the daemon is used" };
