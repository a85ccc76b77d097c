/* runs.c - /v1/runs: translates HTTP into the calls of service_runs.h. */
#include "base/table.h"
#include "doors/rest/idempotency_key.h"
#include "doors/rest/rest.h"
#include "doors/rest/run_follow.h"
#include "engine/service/schema/schema.h"
#include "json/writer.h"

#include <inttypes.h>
#include <stdio.h>

enum { PAGE = 100 };

/* --- begin a run ------------------------------------------------------------------------------ */

static int submit(struct exchange *exchange, error *err)
{
    struct run_order order = { .watcher = exchange_watcher(exchange, true) };
    struct watch *watch;
    if (json_reader_end(&exchange->body, &order.json, err) < 0)
        return -1;
    json_reader_close(&exchange->body);
    exchange_order(exchange, order.json, &order.order);
    int result = service_run(exchange->service, &exchange->caller, &order, &watch, err);
    exchange_answer_order(exchange, &order.order);
    return result < 0 ? -1 : exchange_join_new(exchange, watch, err);
}

static void post_run(struct exchange *exchange)
{
    error err;
    if (!exchange->user && submit(exchange, &err) < 0)
        exchange_fail(exchange, &err);
    else
        exchange_tell_run(exchange);
}

/* --- an existing run -------------------------------------------------------------------------- */

static struct watch *watch_run(struct exchange *exchange, error *err)
{
    const struct watcher watcher = exchange_watcher(exchange, false);
    return service_watch(exchange->service, &exchange->caller, exchange->parameters[0], &watcher,
                         err);
}

static int join_until(struct exchange *exchange, error *err)
{
    int64_t wait_s = (int64_t) exchange_query_count(exchange, "wait", 0);
    struct watch *watch = watch_run(exchange, err);
    return watch ? exchange_join_until(exchange, watch, deadline_in(wait_s * 1000), err) : -1;
}

static void get_run(struct exchange *exchange)
{
    error err;
    if (!exchange->user && join_until(exchange, &err) < 0)
        exchange_fail(exchange, &err);
    else
        exchange_tell_run(exchange);
}

static int cancel(struct exchange *exchange, error *err)
{
    struct watch *watch = watch_run(exchange, err);
    if (!watch || exchange_join(exchange, watch, err) < 0)
        return -1;
    watch_cancel(watch);
    return 0;
}

static void delete_run(struct exchange *exchange)
{
    error err;
    if (!exchange->user && cancel(exchange, &err) < 0)
        exchange_fail(exchange, &err);
    else
        exchange_tell_run(exchange);
}

static void get_run_events(struct exchange *exchange)
{
    error err;
    struct watch *watch = watch_run(exchange, &err);
    if (!watch || exchange_join(exchange, watch, &err) < 0)
        exchange_fail(exchange, &err);
    else
        exchange_tell_events(exchange);
}

/* --- the list of runs ------------------------------------------------------------------------- */

static void write_row(void *context, const struct run_row *row)
{
    struct bytes *json = context;
    json_open(json, '{');
    json_string_field(json, "id", row->id);
    json_string_field(json, "status", row->status);
    json_string_field(json, "fault", row->fault);
    json_moment_field(json, "created_at", row->created_ms);
    if (row->is_over)
        json_number_field(json, "took_ms", row->took_ms);
    else
        json_null_field(json, "took_ms");
    json_close(json, '}');
}

static void get_runs(struct exchange *exchange)
{
    struct bytes json = json_begin('{');
    struct run_page page = { .status = exchange_query(exchange, "status"),
                             .max = exchange_query_count(exchange, "limit", PAGE),
                             .cursor = exchange_query_count(exchange, "cursor", UINT64_MAX),
                             .context = &json,
                             .each = write_row };
    error err;
    json_open_field(&json, "runs", '[');
    if (service_list_runs(exchange->service, &exchange->caller, &page, &err) < 0) {
        bytes_done(&json);
        exchange_fail(exchange, &err);
        return;
    }
    json_close(&json, ']');
    char next[24];
    (void) snprintf(next, sizeof next, "%" PRIu64, page.next);
    json_string_field(&json, "next_cursor", page.next > 0 ? next : NULL);
    exchange_end_json(exchange, &json, "}");
}

static const struct route rows[] = {
    /* clang-format off */
    { "POST",   "/v1/runs",               BODY_JSON, post_run,       "Runs code or a command and answers with the result; "
                                                                     "as a stream of events with Accept: text/event-stream or ?stream=1",
      .is_once = true, .takes = "RunRequest", .gives = "RunResult", .streams = true, .may_be_202 = true, .operation = "createRun",
      .query = QUERY({ "stream", IN_QUERY, "=0, 1", "1: answers with events, as Accept: text/event-stream does" },
                     { "from", IN_QUERY, "string", "with events: the id of the last one that was seen" },
                     { "Prefer", IN_HEADER, "string",
                       "respond-async: 202 and where to ask, instead of the result; with wait=N that comes after N "
                       "seconds" },
                     { "Idempotency-Key", IN_HEADER, KEY_TYPE, KEY_TEXT }) },
    { "GET",    "/v1/runs",               BODY_NONE, get_runs,       "Runs, the newest first, page by page", RIGHT_RESULTS, .gives = "RunPage", .operation = "listRuns",
      .query = QUERY({ "limit", IN_QUERY, "count 1..1000", "rows of a page; 100 if it is left out" },
                     { "cursor", IN_QUERY, "count", "`next_cursor` of the page before" },
                     { "status", IN_QUERY,
                       "=queued, building, loading, running, stopping, collecting, gating, ok, error, limit, "
                       "denied, pending_approval, cancelled, lost",
                       "only runs with this status" }) },
    { "GET",    "/v1/runs/{id}",          BODY_NONE, get_run,        "The result of a run, or where it stands; with ?wait= it waits for the end", RIGHT_RESULTS,
      .gives = "RunResultOrState", .streams = true, .operation = "getRun",
      .query = QUERY({ "wait", IN_QUERY, "count 0..300", "waits so many seconds for the end" },
                     { "stream", IN_QUERY, "=0, 1", "1: answers with events" },
                     { "from", IN_QUERY, "string", "with events: the id of the last one that was seen" }) },
    { "DELETE", "/v1/runs/{id}",          BODY_NONE, delete_run,     "Cancels a run and answers with its result", RIGHT_RESULTS, .gives = "RunOrCellResult", .operation = "cancelRun" },
    { "GET",    "/v1/runs/{id}/events",   BODY_NONE, get_run_events, "The events of a run, from its beginning or from where a stream broke off", RIGHT_RESULTS,
      .mime = "text/event-stream", .operation = "followRun",
      .query = QUERY({ "from", IN_QUERY, "string", "the id of the last event that was seen; 0: all of them" },
                     { "Last-Event-ID", IN_HEADER, "string", "the same, as browsers send it" }) },
    /* clang-format on */
};

const struct route_table run_routes = { "runs", rows, COUNT_OF(rows), RIGHT_RUN,
                                        .text = "Code that runs once, in a sandbox of its own" };
