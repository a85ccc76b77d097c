/* processes.c - /v1/sessions/{id}/processes: translates HTTP into the calls of service_processes.h.
 * The ids of events are offsets: a client that reconnects with Last-Event-ID, or ?offset=, misses
 * nothing that is still kept. */
#include "engine/service/service_processes.h"

#include "base/table.h"
#include "base/utf8.h"
#include "doors/rest/idempotency_key.h"
#include "doors/rest/rest.h"
#include "doors/rest/run_follow.h"
#include "engine/service/schema/schema.h"
#include "json/chunked_text.h"
#include "json/writer.h"

#include <inttypes.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

/* The data of an exchange that waits for a process, or reads from it. */
struct view {
    struct process_watch *watch;
    bool wants_events, wants_end;
    deadline patience;         /* how long to wait for its end */
    struct chunked_text event; /* being sent */
};

static void leave(struct exchange *exchange)
{
    struct view *view = exchange->user;
    process_watch_close(view->watch);
    bytes_done(&view->event.text);
    free(view);
}

static struct view *join(struct exchange *exchange, struct process *process, uint64_t offset,
                         error *err)
{
    const struct waker waker = { .woken = exchange_wake, .context = exchange };
    struct process_watch *watch = service_process_watch(process, offset, &waker, err);
    struct view *view = watch ? calloc(1, sizeof *view) : NULL;
    if (!view) {
        process_watch_close(watch);
        (void) fail(err, ERR_SYSTEM, "no memory to read from a process");
        return NULL;
    }
    view->watch = watch;
    exchange->user = view;
    exchange->closed = leave;
    return view;
}

/* --- events ----------------------------------------------------------------------------------- */

static void write_output(const struct process_event *event, struct bytes *out)
{
    json_open(out, '{');
    if (utf8_is_valid(event->bytes, event->size)) {
        json_key(out, "data");
        json_text(out, event->bytes, event->size);
    } else {
        json_key(out, "data_base64");
        json_base64(out, event->bytes, event->size);
    }
    json_close(out, '}');
}

static void write_event(struct view *view, const struct process_event *event)
{
    static const struct {
        const char *name;
        bool has_id;
    } rows[PROCESS_EVENTS] = {
        [PROCESS_EVENT_STARTED] = { "started", true },
        [PROCESS_EVENT_STDOUT] = { "stdout", true },
        [PROCESS_EVENT_STDERR] = { "stderr", true },
        [PROCESS_EVENT_LOST] = { "lost", false },
        [PROCESS_EVENT_PAUSED] = { "paused", false },
        [PROCESS_EVENT_RESUMED] = { "resumed", false },
        [PROCESS_EVENT_END] = { "end", true },
    };
    struct bytes *out = &view->event.text;
    auto_bytes json = { 0 };
    if (event->kind == PROCESS_EVENT_STARTED || event->kind == PROCESS_EVENT_END)
        service_process_write(process_watch_process(view->watch), &json);
    else if (event->kind == PROCESS_EVENT_LOST)
        bytes_print(&json, "{\"bytes\":%" PRIu64 "}", event->lost);
    else if (event->bytes)
        write_output(event, &json);
    else
        bytes_add_text(&json, "{}");
    bytes_print(out, "event: %s\n", rows[event->kind].name);
    if (rows[event->kind].has_id)
        bytes_print(out, "id: %" PRIu64 "\n", event->offset);
    bytes_add_text(out, "data: ");
    bytes_add(out, json.data, json.size);
    bytes_add_text(out, "\n\n");
    out->failed = out->failed || json.failed;
}

static ssize_t read_events(struct exchange *exchange, char *bytes, size_t size)
{
    struct view *view = exchange->user;
    struct process_event event;
    if (chunked_text_are_taken(&view->event)) {
        int got = process_watch_next(view->watch, &event);
        if (got <= 0)
            return got;
        chunked_text_forget(&view->event);
        write_event(view, &event);
    }
    if (view->event.text.failed)
        return STREAM_BROKEN;
    return (ssize_t) chunked_text_take(&view->event, bytes, size);
}

/* --- start a process -------------------------------------------------------------------------- */

static void answer_process(struct exchange *exchange, const struct process *process,
                           unsigned status)
{
    struct bytes json = { 0 };
    service_process_write(process, &json);
    exchange_answer(exchange, status, &json);
}

/* Skips the output meanwhile, so that the program need not wait for us; the last part is kept. */
static bool has_ended(const struct view *view)
{
    struct process_event event;
    int got;
    do
        got = process_watch_next(view->watch, &event);
    while (got == 1);
    return got == FLOW_END;
}

static void answer_end(struct exchange *exchange, unsigned status)
{
    const struct view *view = exchange->user;
    struct bytes json = { 0 };
    if (!has_ended(view) && !deadline_has_passed(view->patience)) {
        exchange_wait_until(exchange, view->patience);
        return;
    }
    process_watch_write(view->watch, &json);
    exchange_answer(exchange, status, &json);
}

static deadline patience_of(const struct exchange *exchange)
{
    return deadline_in((int64_t) exchange_query_count(exchange, "wait", 0) * 1000);
}

static void answer_started(struct exchange *exchange)
{
    const struct view *view = exchange->user;
    const struct process *process = process_watch_process(view->watch);
    error err;
    int started = service_process_look(process, &err);
    if (started < 0)
        exchange_fail(exchange, &err);
    else if (started == PROCESS_LATER)
        exchange_wait(exchange);
    else if (view->wants_events)
        exchange_stream(exchange, read_events);
    else if (view->wants_end)
        answer_end(exchange, MHD_HTTP_CREATED);
    else
        answer_process(exchange, process, MHD_HTTP_CREATED);
}

static int begin_process(struct exchange *exchange, struct process **ret_process, error *err)
{
    auto_json json = NULL;
    struct order once;
    if (exchange->body_bytes > 0 && json_reader_end(&exchange->body, &json, err) < 0)
        return -1;
    json_reader_close(&exchange->body);
    exchange_order(exchange, json, &once);
    const struct process_order order = { .order = &once,
                                         .session = exchange->parameters[0],
                                         .request = json };
    int begun =
        service_process_start(exchange->service, &exchange->caller, &order, ret_process, err);
    exchange_answer_order(exchange, &once);
    return begun;
}

static void post_process(struct exchange *exchange)
{
    error err;
    struct process *process = NULL;
    if (!exchange->user) {
        struct view *view =
            begin_process(exchange, &process, &err) == 0 ? join(exchange, process, 0, &err) : NULL;
        if (!view) {
            exchange_fail(exchange, &err);
            return;
        }
        view->wants_events = exchange_wants_events(exchange);
        view->wants_end = exchange_query(exchange, "wait") != NULL;
        view->patience = patience_of(exchange);
    }
    answer_started(exchange);
}

/* --- an existing process ---------------------------------------------------------------------- */

static struct process *exchange_process(struct exchange *exchange)
{
    struct process *process = NULL;
    error err;
    const struct session *session = exchange_tombstone(exchange);
    if (session && service_process_find(exchange->service, session, exchange->parameters[1],
                                        &process, &err) < 0)
        exchange_fail(exchange, &err);
    return process;
}

static void get_process(struct exchange *exchange)
{
    error err;
    if (exchange->user) {
        answer_end(exchange, MHD_HTTP_OK);
        return;
    }
    struct process *process = exchange_process(exchange);
    if (!process)
        return;
    bool wants_end = exchange_query(exchange, "wait") != NULL;
    struct view *view = wants_end ? join(exchange, process, 0, &err) : NULL;
    if (view) {
        view->patience = patience_of(exchange);
        answer_end(exchange, MHD_HTTP_OK);
    } else if (wants_end) {
        exchange_fail(exchange, &err);
    } else {
        answer_process(exchange, process, MHD_HTTP_OK);
    }
}

static void get_processes(struct exchange *exchange)
{
    const struct session *session = exchange_tombstone(exchange);
    const char *all = exchange_query(exchange, "all");
    bool wants_all = all && strcmp(all, "1") == 0;
    const struct process *each = NULL;
    if (!session)
        return;
    struct bytes json = json_begin('{');
    json_open_field(&json, "processes", '[');
    while ((each = service_process_next(exchange->service, session, each, wants_all)))
        service_process_write(each, &json);
    exchange_end_json(exchange, &json, "]}");
}

static void get_process_events(struct exchange *exchange)
{
    error err;
    const char *last = exchange_header(exchange, "Last-Event-ID");
    uint64_t offset = exchange_query_count(exchange, "offset", last ? strtoull(last, NULL, 10) : 0);
    struct process *process = exchange_process(exchange);
    if (!process)
        return;
    if (!join(exchange, process, offset, &err))
        exchange_fail(exchange, &err);
    else
        exchange_stream(exchange, read_events);
}

static void answer_order(struct exchange *exchange, const struct process *process, int done,
                         const error *err)
{
    if (done < 0)
        exchange_fail(exchange, err);
    else
        answer_process(exchange, process, MHD_HTTP_OK);
}

static void post_stdin(struct exchange *exchange)
{
    error err;
    auto_bytes data = { 0 };
    bool ends = false;
    const struct field fields[] = {
        { "data", FIELD_TEXT, &data, PROCESS_FEED_MAX },
        { "data_base64", FIELD_BASE64, &data, PROCESS_FEED_MAX },
        { "close", FIELD_FLAG, &ends, 0 },
    };
    struct process *process = exchange_process(exchange);
    if (!process)
        return;
    int done = exchange_fields(exchange, fields, COUNT_OF(fields), &err);
    if (done == 0)
        done = service_process_feed(process, &data, ends, &err);
    answer_order(exchange, process, done, &err);
}

static void post_signal(struct exchange *exchange)
{
    error err;
    auto_bytes name = { 0 };
    bool whole_group = false;
    const struct field fields[] = {
        { "signal", FIELD_TEXT, &name, 16 },
        { "group", FIELD_FLAG, &whole_group, 0 },
    };
    struct process *process = exchange_process(exchange);
    if (!process)
        return;
    int done = exchange_fields(exchange, fields, COUNT_OF(fields), &err);
    if (done == 0)
        done = service_process_signal(process, bytes_text(&name), whole_group, &err);
    answer_order(exchange, process, done, &err);
}

static void post_resize(struct exchange *exchange)
{
    error err;
    uint64_t rows = 24, columns = 80;
    const struct field fields[] = {
        { "rows", FIELD_COUNT, &rows, PROCESS_SIZE_MAX },
        { "columns", FIELD_COUNT, &columns, PROCESS_SIZE_MAX },
    };
    struct process *process = exchange_process(exchange);
    if (!process)
        return;
    int done = exchange_fields(exchange, fields, COUNT_OF(fields), &err);
    if (done == 0)
        done = service_process_resize(process, (uint16_t) rows, (uint16_t) columns, &err);
    answer_order(exchange, process, done, &err);
}

/* clang-format off */
static const struct route rows[] = {
    { "POST", "/v1/sessions/{id}/processes",                   BODY_JSON, post_process,  "Starts a program, with pipes or a terminal; with ?wait= it answers when it has ended, with its output; its events follow with Accept: text/event-stream", .is_once = true, .takes = "ProcessRequest", .gives = "Process", .status = 201, .streams = true, .awaits = AWAITS_STANDING, .operation = "startProcess",
      .query = QUERY({ "stream", IN_QUERY, "=0, 1", "1: its events follow, as with Accept: text/event-stream" },
                     { "wait", IN_QUERY, "count 0..300",
                       "waits so many seconds for its end, and answers with its output" },
                     { "Idempotency-Key", IN_HEADER, KEY_TYPE, KEY_TEXT }) },
    { "GET",  "/v1/sessions/{id}/processes",                   BODY_NONE, get_processes, "The programs that run; ?all=1: those too that have ended of late", .gives = "ProcessList", .awaits = AWAITS_STANDING, .operation = "listProcesses",
      .query = QUERY({ "all", IN_QUERY, "=0, 1", "1: those too that have ended of late" }) },
    { "GET",  "/v1/sessions/{id}/processes/{process}",         BODY_NONE, get_process,   "A program, by id, pid or tag; with ?wait= when it has ended, with its output", .gives = "Process", .awaits = AWAITS_STANDING, .operation = "getProcess",
      .query = QUERY({ "wait", IN_QUERY, "count 0..300",
                       "waits so many seconds for its end, and answers with its output" }) },
    { "GET",  "/v1/sessions/{id}/processes/{process}/events",  BODY_NONE, get_process_events, "What it prints, from ?offset= or Last-Event-ID on, and its end", .mime = "text/event-stream", .streams = true, .awaits = AWAITS_STANDING, .operation = "followProcess",
      .query = QUERY({ "offset", IN_QUERY, "count", "bytes of its output that have been seen" },
                     { "Last-Event-ID", IN_HEADER, "string", "the same, as browsers send it" }) },
    { "POST", "/v1/sessions/{id}/processes/{process}/stdin",   BODY_JSON, post_stdin,    "Types into it; closes its input", .takes = "ProcessInput", .may_lack_body = true, .gives = "Process", .awaits = AWAITS_STANDING, .operation = "writeToProcess" },
    { "POST", "/v1/sessions/{id}/processes/{process}/signal",  BODY_JSON, post_signal,   "Sends it, or its whole group, a signal", .takes = "ProcessSignal", .gives = "Process", .awaits = AWAITS_STANDING, .operation = "signalProcess" },
    { "POST", "/v1/sessions/{id}/processes/{process}/resize",  BODY_JSON, post_resize,   "Gives its terminal another size", .takes = "TerminalSize", .may_lack_body = true, .gives = "Process", .is_repeatable = true, .awaits = AWAITS_STANDING, .operation = "resizeTerminal" },
};
/* clang-format on */
const struct route_table process_routes = { "processes", rows, COUNT_OF(rows), RIGHT_SESSIONS,
                                            .text =
                                                "Programs in a session, with pipes or a terminal" };
