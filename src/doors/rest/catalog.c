/* catalog.c - policies, templates, limits, and whether the daemon works. */
#include "base/table.h"
#include "doors/rest/openapi.h"
#include "doors/rest/rest.h"
#include "engine/service/service_catalog.h"
#include "engine/service/service_status.h"
#include "model/limits.h"
#include "json/writer.h"

#include <microhttpd.h>
#include <string.h>

static void answer_health(struct exchange *exchange,
                          int (*check)(const struct service *service, error *err))
{
    struct service_load load;
    error cause = { 0 };
    bool is_well = check(exchange->service, &cause) == 0;
    service_load(exchange->service, &load);
    struct bytes json = json_begin('{');
    json_string_field(&json, "status", is_well ? "ok" : "unavailable");
    json_string_field(&json, "cause", is_well ? NULL : cause.text);
    json_string_field(&json, "version", GLOVEBOX_VERSION);
    json_count_field(&json, "slots", load.slots);
    json_count_field(&json, "in_use", load.in_use);
    json_count_field(&json, "parked", load.idle);
    json_count_field(&json, "active", load.active);
    json_count_field(&json, "queued", load.queued);
    json_close(&json, '}');
    exchange_answer(exchange, is_well ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, &json);
}

static void get_health(struct exchange *exchange)
{
    answer_health(exchange, service_check_health);
}

static void get_readiness(struct exchange *exchange)
{
    answer_health(exchange, service_check_ready);
}

static void write_policy(void *context, const struct policy_entry *entry)
{
    struct bytes *json = context;
    json_open(json, '{');
    json_string_field(json, "name", entry->name);
    json_string_field(json, "digest", entry->digest);
    json_string_field(json, "description", entry->description);
    json_key(json, "policy");
    json_raw(json, entry->json, strlen(entry->json));
    json_close(json, '}');
}

static void get_policies(struct exchange *exchange)
{
    char usual[CATALOG_NAME_SIZE];
    struct bytes json = json_begin('{');
    service_default_policy(exchange->service, &exchange->caller, usual);
    json_string_field(&json, "default", usual);
    json_open_field(&json, "policies", '[');
    service_each_policy(exchange->service, write_policy, &json);
    exchange_end_json(exchange, &json, "]}");
}

static void write_template(void *context, const struct template_entry *entry)
{
    struct bytes *json = context;
    json_open(json, '{');
    json_string_field(json, "name", entry->name);
    json_string_field(json, "digest", entry->digest);
    json_string_field(json, "description", entry->description);
    json_open_field(json, "languages", '[');
    for (size_t i = 0; i < entry->language_count; i++)
        json_string(json, entry->languages[i]);
    json_close_all(json, "]}");
}

static void get_templates(struct exchange *exchange)
{
    struct bytes json = json_begin('{');
    json_open_field(&json, "templates", '[');
    service_each_template(exchange->service, write_template, &json);
    exchange_end_json(exchange, &json, "]}");
}

static void get_limits(struct exchange *exchange)
{
    struct bytes json = json_begin('{');
    json_open_field(&json, "limits", '[');
    for (enum limit_id id = 0; id < LIMITS; id++) {
        const struct limit_row *row = &limit_rows[id];
        uint64_t scale = row->unit == UNIT_MILLI ? 1000 : 1;
        json_open(&json, '{');
        json_string_field(&json, "name", row->json_name);
        json_count_field(&json, "default", row->start / scale);
        json_count_field(&json, "min", row->min / scale);
        json_count_field(&json, "max", row->max / scale);
        json_string_field(&json, "text", row->text);
        json_close(&json, '}');
    }
    exchange_end_json(exchange, &json, "]}");
}

static void get_openapi(struct exchange *exchange)
{
    struct bytes json = { 0 };
    openapi_write(route_tables, &json);
    exchange_answer(exchange, MHD_HTTP_OK, &json);
}

static const struct route rows[] = {
    /* clang-format off */
    { "GET", "/v1/policies",  BODY_NONE, get_policies,  "What runs may do", .gives = "PolicyList", .operation = "listPolicies" },
    { "GET", "/v1/templates", BODY_NONE, get_templates, "What runs stand on", .gives = "TemplateList", .operation = "listTemplates" },
    { "GET", "/v1/limits",    BODY_NONE, get_limits,    "Every limit with its bounds", .gives = "LimitList", .operation = "listLimits" },
    { "GET", "/healthz",      BODY_NONE, get_health,    "Whether runs can be started", RIGHT_NONE, .gives = "Health", .or_503 = "HealthOrError", .operation = "getHealth" },
    { "GET", "/readyz",       BODY_NONE, get_readiness, "Whether a run begins now", RIGHT_NONE, .gives = "Health", .or_503 = "HealthOrError", .operation = "getReadiness" },
    { "GET", "/openapi.json", BODY_NONE, get_openapi,   "This document", RIGHT_NONE, .gives = "Document", .operation = "getOpenApiDocument" },
    /* clang-format on */
};

const struct route_table list_routes = {
    "lists", rows, COUNT_OF(rows), RIGHT_ANY,
    .text = "What there is to run with, and whether runs can be started"
};
