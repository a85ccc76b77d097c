/* runs.c - /v1/runs: translates HTTP into the calls of queue.h. */
#include "engine/run/queue.h"

#include "base/table.h"
#include "doors/rest/idempotency_key.h"
#include "doors/rest/openapi/openapi.h"
#include "doors/rest/rest.h"
#include "doors/rest/run_follow.h"
#include "engine/run/run.h"
#include "json/writer.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_MAX_S = 300, PAGE = 100, PAGE_MAX = 1000 };

/* --- beginning one ------------------------------------------------------------------------------
 */

static int submit_new(struct exchange *exchange, struct json_object *json, const char *id,
                      struct run **ret_run, error *err)
{
    const struct service *service = exchange->service;
    struct run_request *request;
    if (request_read(json, &request, err) < 0)
        return -1;
    request->run = id;
    request->account = exchange->caller.account;
    request->request_id = exchange->id;
    return runs_submit(service->runs, request, ret_run, err);
}

static int submit(struct exchange *exchange, error *err)
{
    struct json_object *json;
    struct run *run = NULL;
    if (json_reader_end(&exchange->body, &json, err) < 0)
        return -1;
    json_reader_close(&exchange->body);
    int result = once_run(exchange, json, submit_new, &run, err);
    return result < 0 || exchange->is_answered ? result : exchange_join_new(exchange, run, err);
}

static void post_run(struct exchange *exchange)
{
    error err;
    if (!exchange->user && submit(exchange, &err) < 0)
        exchange_fail(exchange, &err);
    else if (!exchange->is_answered)
        exchange_tell_run(exchange);
}

/* --- one that there is --------------------------------------------------------------------------
 */

struct run *exchange_run(struct exchange *exchange)
{
    const struct service *service = exchange->service;
    struct run *run = runs_find(service->runs, exchange->caller.account, exchange->parameters[0]);
    error err;
    if (!run && exchange_tell_lost(exchange, exchange->parameters[0], &err) < 0)
        exchange_fail(exchange, &err);
    return run;
}

static void get_run(struct exchange *exchange)
{
    error err;
    uint64_t wait_s;
    if (!exchange->user) {
        struct run *run = exchange_run(exchange);
        if (!run)
            return;
        if (exchange_query_count(exchange, "wait", WAIT_MAX_S, 0, &wait_s, &err) < 0 ||
            exchange_await_run(exchange, run, deadline_in((int64_t) wait_s * 1000), MHD_HTTP_OK,
                               &err) < 0) {
            exchange_fail(exchange, &err);
            return;
        }
    }
    exchange_tell_run(exchange);
}

static int cancel(struct exchange *exchange, struct run *run, error *err)
{
    if (exchange_join_run(exchange, run, false, err) < 0)
        return -1;
    run_cancel(run);
    return 0;
}

static void delete_run(struct exchange *exchange)
{
    error err;
    struct run *run = exchange->user ? NULL : exchange_run(exchange);
    if (!exchange->user && !run)
        return;
    if (run && cancel(exchange, run, &err) < 0)
        exchange_fail(exchange, &err);
    else
        exchange_tell_run(exchange);
}

static void get_run_events(struct exchange *exchange)
{
    error err;
    struct run *run = exchange_run(exchange);
    if (!run)
        return;
    if (exchange_join_run(exchange, run, false, &err) < 0)
        exchange_fail(exchange, &err);
    else
        exchange_tell_events(exchange);
}

/* --- all of them --------------------------------------------------------------------------------
 */

/* The verdict of a run that has ended, else its state. */
static const char *status_of(const struct run *run)
{
    return run->state == RUN_DONE ? outcome_status_name(run->verdict.status)
                                  : run_state_name(run_state_shown(run));
}

static int check_status(const char *status, error *err)
{
    if (!status)
        return 0;
    for (enum run_state state = 0; state < RUN_DONE; state++)
        if (strcmp(run_state_name(state), status) == 0)
            return 0;
    for (enum run_status verdict = 0; verdict < RUN_STATUSES; verdict++)
        if (strcmp(outcome_status_name(verdict), status) == 0)
            return 0;
    return fail(err, ERR_BAD_REQUEST,
                "status '%.40s' does not exist; it is one of queued, building, loading, running, "
                "stopping, collecting, gating, ok, error, limit, denied, cancelled, lost",
                status);
}

static void write_row(const struct run *run, struct bytes *json)
{
    json_open(json, '{');
    json_string_field(json, "id", run->id);
    json_string_field(json, "status", status_of(run));
    json_string_field(json, "fault",
                      run->state == RUN_DONE ? outcome_fault_name(run->verdict.fault) : NULL);
    json_number_field(json, "created_ms", run->created_ms);
    if (run->state == RUN_DONE)
        json_number_field(json, "took_ms", (run->done_us - run->submitted_us) / 1000);
    else
        json_null_field(json, "took_ms");
    json_close(json, '}');
}

/* The number of the last run of the page before: runs that come or are forgotten in between
 * neither shift a page nor spoil it. */
static void get_runs(struct exchange *exchange)
{
    const struct service *service = exchange->service;
    const char *status = exchange_query(exchange, "status");
    uint64_t max;
    uint64_t cursor;
    error err;
    if (check_status(status, &err) < 0 ||
        exchange_query_count(exchange, "limit", PAGE_MAX, PAGE, &max, &err) < 0 ||
        exchange_query_count(exchange, "cursor", UINT64_MAX, UINT64_MAX, &cursor, &err) < 0) {
        exchange_fail(exchange, &err);
        return;
    }
    struct bytes json = { 0 };
    uint64_t last = 0;
    bool is_more = false;
    json_open(&json, '{');
    json_key(&json, "runs");
    json_open(&json, '[');
    for (const struct run *run = service->runs->newest; run && !is_more; run = run->older) {
        if (run->number >= cursor || !account_sees(exchange->caller.account, run->account) ||
            (status && strcmp(status_of(run), status) != 0))
            continue;
        is_more = max == 0;
        if (is_more)
            break;
        write_row(run, &json);
        last = run->number;
        max--;
    }
    json_close(&json, ']');
    char next[24];
    (void) snprintf(next, sizeof next, "%llu", (unsigned long long) last);
    json_string_field(&json, "next", is_more && last > 0 ? next : NULL);
    json_close(&json, '}');
    exchange_answer(exchange, MHD_HTTP_OK, &json);
}

static const struct parameter post_query[] = {
    { "stream", IN_QUERY, "=0,1", "1: answers with events, as Accept: text/event-stream does" },
    { "from", IN_QUERY, "string", "with events: the id of the last one that was seen" },
    { "Prefer", IN_HEADER, "string",
      "respond-async: 202 and where to ask, instead of the result; with wait=N that comes after N "
      "seconds" },
    { "Idempotency-Key", IN_HEADER, KEY_TYPE, KEY_TEXT },
    { 0 },
};
static const struct parameter get_query[] = {
    { "wait", IN_QUERY, "count 0..300", "waits so many seconds for the end" },
    { "stream", IN_QUERY, "=0,1", "1: answers with events" },
    { 0 },
};
static const struct parameter events_query[] = {
    { "from", IN_QUERY, "string", "the id of the last event that was seen; 0: all of them" },
    { "Last-Event-ID", IN_HEADER, "string", "the same, as browsers send it" },
    { 0 },
};
static const struct parameter list_query[] = {
    { "limit", IN_QUERY, "count 1..1000", "rows of a page; 100 if it is left out" },
    { "cursor", IN_QUERY, "count", "`next` of the page before" },
    { "status", IN_QUERY,
      "=queued,building,loading,running,stopping,collecting,gating,ok,error,limit,denied,"
      "pending_approval,cancelled,lost",
      "only runs with this status" },
    { 0 },
};

static const struct route rows[] = {
    /* clang-format off */
    { "POST",   "/v1/runs",               BODY_JSON, post_run,       "Runs code or a command and answers with the result; "
                                                                     "as a stream of events with Accept: text/event-stream or ?stream=1",
      .query = post_query, .is_once = true, .takes = "RunRequest", .gives = "RunResult", .streams = true, .may_be_202 = true },
    { "GET",    "/v1/runs",               BODY_NONE, get_runs,       "Runs, the newest first, page by page", RIGHT_RESULTS, .query = list_query, .gives = "RunPage" },
    { "GET",    "/v1/runs/{id}",          BODY_NONE, get_run,        "The result of a run, or where it stands; with ?wait= it waits for the end", RIGHT_RESULTS,
      .query = get_query, .gives = "RunResultOrState", .streams = true },
    { "DELETE", "/v1/runs/{id}",          BODY_NONE, delete_run,     "Cancels a run and answers with its result", RIGHT_RESULTS, .gives = "RunOrCellResult" },
    { "GET",    "/v1/runs/{id}/events",   BODY_NONE, get_run_events, "The events of a run, from its beginning or from where a stream broke off", RIGHT_RESULTS,
      .query = events_query, .mime = "text/event-stream" },
    /* clang-format on */
};

const struct route_table run_routes = { "runs", rows, COUNT_OF(rows), RIGHT_RUN };
