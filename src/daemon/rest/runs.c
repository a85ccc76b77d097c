/* runs.c - /v1/runs and /v1/artifacts: translates HTTP into the calls of runs.h. */
#include "daemon/runs.h"

#include "base/table.h"
#include "daemon/json_writer.h"
#include "daemon/rest/events.h"
#include "daemon/rest/rest.h"
#include "daemon/run.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

/* What an exchange holds while it waits for a run. */
struct visit {
    struct run *run;
    struct run_listener listener;
    bool owns_run; /* when the peer hangs up nobody wants the result: the run is cancelled */
    struct event_stream events;
};

static void on_changed(void *context, struct run *run)
{
    struct exchange *exchange = context;
    if (exchange->is_streaming || run->state == RUN_DONE)
        exchange_wake(exchange);
}

static void leave(struct exchange *exchange)
{
    struct visit *visit = exchange->user;
    struct run *run = visit->run;
    bool is_unfinished = visit->owns_run && run->state != RUN_DONE;
    run_unlisten(run, &visit->listener);
    events_done(&visit->events);
    free(visit);
    if (is_unfinished)
        run_cancel(run);
}

int exchange_join_run(struct exchange *exchange, struct run *run, bool owns_run, error *err)
{
    struct visit *visit = calloc(1, sizeof *visit);
    if (!visit)
        return fail(err, ERR_SYSTEM, "no memory to wait for a run");
    visit->run = run;
    visit->owns_run = owns_run;
    visit->listener = (struct run_listener){ .context = exchange, .changed = on_changed };
    events_open(&visit->events, run);
    run_listen(run, &visit->listener);
    exchange->user = visit;
    exchange->closed = leave;
    return 0;
}

static void answer_result(struct exchange *exchange, const struct run *run)
{
    struct bytes json = { 0 };
    bytes_add(&json, run->result.data, run->result.size);
    exchange_answer(exchange, MHD_HTTP_OK, &json);
}

static void answer_when_done(struct exchange *exchange)
{
    const struct visit *visit = exchange->user;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): set unless that failed */
    if (visit->run->state == RUN_DONE)
        answer_result(exchange, visit->run);
    else
        exchange_wait(exchange);
}

static ssize_t read_events(struct exchange *exchange, char *bytes, size_t size)
{
    struct visit *visit = exchange->user;
    return events_read(&visit->events, bytes, size);
}

static bool wants_events(const struct exchange *exchange)
{
    const char *accept = exchange_header(exchange, MHD_HTTP_HEADER_ACCEPT);
    const char *stream = exchange_query(exchange, "stream");
    return (accept && strstr(accept, "text/event-stream")) || (stream && strcmp(stream, "1") == 0);
}

static int submit(struct exchange *exchange, error *err)
{
    struct door *door = exchange->door;
    struct json_object *json;
    struct run_request *request;
    struct run *run;
    if (json_reader_end(&exchange->body, &json, err) < 0)
        return -1;
    json_reader_close(&exchange->body);
    if (request_read(json, &request, err) < 0)
        return -1;
    request->account = exchange->account;
    if (runs_submit(door->runs, request, &run, err) < 0)
        return -1;
    if (exchange_join_run(exchange, run, true, err) < 0) {
        run_cancel(run);
        return -1;
    }
    return 0;
}

void exchange_tell_run(struct exchange *exchange)
{
    if (wants_events(exchange))
        exchange_stream(exchange, read_events);
    else
        answer_when_done(exchange);
}

static void post_run(struct exchange *exchange)
{
    error err;
    if (!exchange->user && submit(exchange, &err) < 0) {
        exchange_fail(exchange, &err);
        return;
    }
    exchange_tell_run(exchange);
}

static struct run *find_run(struct exchange *exchange)
{
    const struct door *door = exchange->door;
    struct run *run = runs_find(door->runs, exchange->account, exchange->parameters[0]);
    if (!run) {
        error err;
        (void) fail(&err, ERR_NOT_FOUND,
                    "no run has the id '%.60s'; results are kept for the last thousand runs only",
                    exchange->parameters[0]);
        exchange_fail(exchange, &err);
    }
    return run;
}

static void get_run(struct exchange *exchange)
{
    const struct run *run = find_run(exchange);
    if (!run)
        return;
    if (run->state == RUN_DONE) {
        answer_result(exchange, run);
        return;
    }
    struct bytes json = { 0 };
    json_open(&json, '{');
    json_string_field(&json, "id", run->id);
    json_string_field(&json, "status", run_state_name(run->state));
    json_close(&json, '}');
    exchange_answer(exchange, MHD_HTTP_OK, &json);
}

static void delete_run(struct exchange *exchange)
{
    error err;
    if (!exchange->user) {
        struct run *run = find_run(exchange);
        if (!run)
            return;
        if (exchange_join_run(exchange, run, false, &err) < 0) {
            exchange_fail(exchange, &err);
            return;
        }
        run_cancel(run);
    }
    answer_when_done(exchange);
}

static void get_run_events(struct exchange *exchange)
{
    error err;
    struct run *run = find_run(exchange);
    if (!run)
        return;
    if (exchange_join_run(exchange, run, false, &err) < 0)
        exchange_fail(exchange, &err);
    else
        exchange_stream(exchange, read_events);
}

static void get_artifact(struct exchange *exchange)
{
    static const char prefix[] = "sha256:";
    const struct door *door = exchange->door;
    const char *name = exchange->parameters[0];
    if (strncmp(name, prefix, sizeof prefix - 1) == 0)
        name += sizeof prefix - 1;
    error err;
    struct blob_view view;
    if (blob_open(door->blobs, exchange->account->owner, name, &view, &err) < 0) {
        exchange_fail(exchange, &err);
        return;
    }
    exchange_add_header(exchange, MHD_HTTP_HEADER_CONTENT_DISPOSITION, "attachment");
    exchange_file(exchange, view.fd, view.size, view.mime, name);
}

static const struct route rows[] = {
    /* clang-format off */
    { "POST",   "/v1/runs",               BODY_JSON, post_run,       "Runs code or a command and answers with the result; "
                                                                     "as a stream of events with Accept: text/event-stream or ?stream=1", .streams = true },
    { "GET",    "/v1/runs/{id}",          BODY_NONE, get_run,        "The result of a run, or where it stands", .right = RIGHT_RESULTS },
    { "DELETE", "/v1/runs/{id}",          BODY_NONE, delete_run,     "Cancels a run and answers with its result", .right = RIGHT_RESULTS },
    { "GET",    "/v1/runs/{id}/events",   BODY_NONE, get_run_events, "The events of a run from its beginning", .mime = "text/event-stream", .right = RIGHT_RESULTS },
    { "GET",    "/v1/artifacts/{sha256}", BODY_NONE, get_artifact,   "The bytes of a file that a run made", .mime = "*/*", .right = RIGHT_RESULTS },
    /* clang-format on */
};

const struct route_table run_routes = { "runs", rows, COUNT_OF(rows), RIGHT_RUN };
