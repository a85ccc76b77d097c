/* status.c - GET /v1/status: how the whole daemon is used, by pool and by key, for `glovebox top`
 * and whoever wants to look. It names keys and tenants, so it is for admins. */
#include "base/clock.h"
#include "base/table.h"
#include "doors/rest/rest.h"
#include "engine/service/service_status.h"
#include "model/limits.h"
#include "json/writer.h"

#include <microhttpd.h>

static void write_pools(const struct pool *pool, const struct templates *templates,
                        struct bytes *json)
{
    json_key(json, "pools");
    json_open(json, '[');
    for_each(pool_class, pool->pool_classes.list) {
        const struct spawn_build *build = &pool_class->build;
        if (!pool_class->is_used)
            continue;
        json_open(json, '{');
        json_string_field(json, "template",
                          build->template <templates->count ? templates->list[build->template].name
                                                            : NULL);
        json_key(json, "set");
        if (build->start == SPAWN_FORKED)
            json_count(json, build->zygote);
        else
            json_null(json);
        json_count_field(json, "tenant", build->tenant);
        json_count_field(json, "memory_bytes", build->memory_bytes);
        json_count_field(json, "parked", pool_class->idle);
        json_count_field(json, "building", pool_class->building);
        json_count_field(json, "target",
                         pool_class_target(&pool->pool_classes, pool_class, (uint64_t) now_ms()));
        json_count_field(json, "per_second", (uint64_t) (pool_class->rate + 0.5));
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void write_account(const struct accounts *accounts, const struct account *account,
                          struct bytes *json)
{
    struct rate_quota quota = account_quota(accounts, account);
    json_open(json, '{');
    json_string_field(json, "id", account->key.id[0] ? account->key.id : NULL);
    json_string_field(json, "name", account->key.id[0] ? account->key.name : "owner");
    json_string_field(json, "tenant", account->key.id[0] ? account->key.tenant : NULL);
    json_count_field(json, "queued", account->turn.queued);
    json_count_field(json, "active", account->turn.active);
    json_count_field(json, "sessions", account->sessions);
    json_count_field(json, "concurrency", account->turn.active_max);
    json_count_field(json, "runs", account->runs);
    json_count_field(json, "refused", account->refused);
    json_count_field(json, "built", account->built);
    json_count_field(json, "cpu_ms", account->cpu_ms);
    json_count_field(json, "cpu_ms_today", account->rate.cpu_ms);
    json_count_field(json, "cpu_seconds_per_day", quota.cpu_seconds_per_day);
    json_count_field(json, "log_bytes_today", account->rate.log_bytes);
    json_count_field(json, "log_bytes_per_day", quota.log_bytes_per_day);
    json_count_field(json, "runs_per_minute", quota.runs_per_minute);
    json_key(json, "ends");
    json_open(json, '{');
    for (enum run_status status = 0; status < RUN_STATUSES; status++)
        if (account->ends[status] > 0)
            json_count_field(json, outcome_status_name(status), account->ends[status]);
    json_close(json, '}');
    json_key(json, "limit_hits");
    json_open(json, '{');
    for (enum limit_id id = 0; id < LIMITS; id++)
        if (account->limit_hits[id] > 0)
            json_count_field(json, limit_rows[id].name, account->limit_hits[id]);
    json_close(json, '}');
    json_close(json, '}');
}

static void get_status(struct exchange *exchange)
{
    const struct service *service = exchange->service;
    const struct runs *runs = service->runs;
    struct service_load load;
    service_load(service, &load);
    struct bytes json = { 0 };
    json_open(&json, '{');
    json_string_field(&json, "version", GLOVEBOX_VERSION);
    json_count_field(&json, "slots", load.slots);
    json_count_field(&json, "in_use", load.in_use);
    json_count_field(&json, "parked", load.idle);
    json_count_field(&json, "building", load.building);
    json_count_field(&json, "active", load.active);
    json_count_field(&json, "queued", load.queued);
    json_count_field(&json, "queue", load.queued_max);
    json_count_field(&json, "sessions", service->sessions->alive);
    json_flag_field(&json, "closing", runs->is_closing);
    write_pools(runs->pool, service->templates, &json);
    json_key(&json, "keys");
    json_open(&json, '[');
    write_account(service->accounts, &service->accounts->local, &json);
    for (const struct account *account = service->accounts->all; account; account = account->next)
        write_account(service->accounts, account, &json);
    json_close(&json, ']');
    json_close(&json, '}');
    exchange_answer(exchange, MHD_HTTP_OK, &json);
}

static const struct route rows[] = {
    { "GET", "/v1/status", BODY_NONE, get_status,
      "How the daemon is used: pools, keys, limits that were hit", .gives = "Status" },
};
const struct route_table status_routes = { "status", rows, COUNT_OF(rows), RIGHT_ADMIN };
