/* contexts.c - /v1/sessions/{id}/contexts: translates HTTP into the calls of service_contexts.h. */
#include "base/table.h"
#include "doors/rest/idempotency_key.h"
#include "doors/rest/rest.h"
#include "doors/rest/run_follow.h"
#include "engine/service/schema/schema.h"
#include "engine/service/service_contexts.h"
#include "json/writer.h"

#include <microhttpd.h>

static struct context *exchange_context(struct exchange *exchange)
{
    struct session *session = exchange_session(exchange);
    struct context *context = NULL;
    error err;
    if (!session)
        return NULL;
    if (service_context_find(session, exchange->parameters[1], &context, &err) < 0)
        exchange_fail(exchange, &err);
    return context;
}

static void answer_context(struct exchange *exchange, const struct context *context,
                           unsigned status)
{
    struct bytes json = { 0 };
    service_context_write(context, &json);
    exchange_answer(exchange, status, &json);
}

static void post_context(struct exchange *exchange)
{
    struct session *session = exchange_session(exchange);
    struct json_object *json;
    struct context *context;
    error err;
    if (!session)
        return;
    if (json_reader_end(&exchange->body, &json, &err) < 0 ||
        service_context_create(session, json, &context, &err) < 0)
        exchange_fail(exchange, &err);
    else
        answer_context(exchange, context, MHD_HTTP_CREATED);
}

static void get_contexts(struct exchange *exchange)
{
    const struct session *session = exchange_tombstone(exchange);
    if (!session)
        return;
    struct bytes json = json_begin('{');
    json_key(&json, "contexts");
    service_contexts_write(session, &json);
    exchange_end_json(exchange, &json, "}");
}

static void delete_context(struct exchange *exchange)
{
    struct context *context = exchange_context(exchange);
    if (!context)
        return;
    service_context_remove(context);
    struct bytes json = json_begin('{');
    json_string_field(&json, "removed", exchange->parameters[1]);
    exchange_end_json(exchange, &json, "}");
}

struct cell_starter {
    struct run_starter starter;
    const struct exchange *exchange;
    struct json_object *json; /* NULL: already taken */
};

static int begin_cell(struct run_starter *starter, const char *id, struct run **ret_run, error *err)
{
    struct cell_starter *own = (struct cell_starter *) starter;
    const struct exchange *exchange = own->exchange;
    const struct cell_order order = { .session = exchange->parameters[0],
                                      .context = exchange->parameters[1],
                                      .id = id,
                                      .request = own->json };
    own->json = NULL;
    return service_cell_begin(exchange->service, &exchange->caller, &order, ret_run, err);
}

static int submit_cell(struct exchange *exchange, error *err)
{
    struct cell_starter own = { { begin_cell, exchange->service, &exchange->caller }, exchange };
    const struct watcher watcher = exchange_watcher(exchange, true);
    struct order order;
    struct watch *watch;
    if (json_reader_end(&exchange->body, &own.json, err) < 0)
        return -1;
    json_reader_close(&exchange->body);
    exchange_order(exchange, own.json, &order);
    int result = service_start_once(&own.starter, &order, &watcher, &watch, err);
    (void) json_object_put(own.json);
    exchange_answer_order(exchange, &order);
    return result < 0 ? -1 : exchange_join_new(exchange, watch, err);
}

static void post_cell(struct exchange *exchange)
{
    error err;
    if (!exchange->user) {
        if (!exchange_tombstone(exchange))
            return;
        if (submit_cell(exchange, &err) < 0) {
            exchange_fail(exchange, &err);
            return;
        }
    }
    if (!exchange->is_answered)
        exchange_tell_run(exchange);
}

static void post_interrupt(struct exchange *exchange)
{
    struct context *context = exchange_context(exchange);
    bool interrupted;
    error err;
    if (!context)
        return;
    if (service_context_interrupt(context, &interrupted, &err) < 0) {
        exchange_fail(exchange, &err);
        return;
    }
    struct bytes json = json_begin('{');
    json_flag_field(&json, "interrupted", interrupted);
    exchange_end_json(exchange, &json, "}");
}

static void post_restart(struct exchange *exchange)
{
    struct context *context = exchange_context(exchange);
    error err;
    if (!context)
        return;
    if (service_context_restart(context, &err) < 0)
        exchange_fail(exchange, &err);
    else
        answer_context(exchange, context, MHD_HTTP_OK);
}

static const struct route rows[] = {
    /* clang-format off */
    { "POST",   "/v1/sessions/{id}/contexts", BODY_JSON, post_context, "Makes a context: an interpreter with a state of its own", .status = 201, .takes = "ContextRequest", .gives = "Context", .awaits = AWAITS_STANDING, .operation = "createContext" },
    { "GET",    "/v1/sessions/{id}/contexts", BODY_NONE, get_contexts, "The contexts of a session", .gives = "ContextList", .awaits = AWAITS_STANDING, .operation = "listContexts" },
    { "DELETE", "/v1/sessions/{id}/contexts/{context}", BODY_NONE, delete_context, "Ends a context; its session goes on", .gives = "ContextRemoved", .awaits = AWAITS_BOTH, .operation = "removeContext" },
    { "POST",   "/v1/sessions/{id}/contexts/{context}/run", BODY_JSON, post_cell, "Runs a cell and answers with its result, or with events, as /v1/runs", .is_once = true, .takes = "CellRequest", .gives = "CellResult", .streams = true, .may_be_202 = true, .awaits = AWAITS_STANDING, .operation = "runCell",
      .query = QUERY({ "stream", IN_QUERY, "=0, 1", "1: answers with events, as Accept: text/event-stream does" },
                     { "from", IN_QUERY, "string", "with events: the id of the last one that was seen" },
                     { "Prefer", IN_HEADER, "string", "respond-async, as for POST /v1/runs" },
                     { "Idempotency-Key", IN_HEADER, KEY_TYPE, KEY_TEXT }) },
    { "POST",   "/v1/sessions/{id}/contexts/{context}/interrupt", BODY_NONE, post_interrupt, "Interrupts the cell that runs", .gives = "Interrupted", .is_repeatable = true, .awaits = AWAITS_STANDING, .operation = "interruptCell" },
    { "POST",   "/v1/sessions/{id}/contexts/{context}/restart", BODY_NONE, post_restart, "Gives the context a fresh interpreter", .gives = "Context", .awaits = AWAITS_BOTH, .operation = "restartContext" },
    /* clang-format on */
};

const struct route_table context_routes = { "contexts", rows, COUNT_OF(rows), RIGHT_SESSIONS,
                                            .text = "Interpreters of a session, and their cells" };
