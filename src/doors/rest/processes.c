/* processes.c - /v1/sessions/{id}/processes: translates HTTP into the calls of processes.h. Events
 * have ids, which are offsets: whoever reconnects with Last-Event-ID, or ?offset=, misses nothing
 * that is still kept. */
#include "engine/process/processes.h"

#include "base/table.h"
#include "base/utf8.h"
#include "doors/rest/idempotency_key.h"
#include "doors/rest/openapi/openapi.h"
#include "doors/rest/rest.h"
#include "engine/service/service_processes.h"
#include "engine/service/service_sessions.h"
#include "engine/session/session_registry.h"
#include "json/chunked_text.h"
#include "json/writer.h"

#include <assert.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_MAX = 128, TIMEOUT_MAX_MS = 24 * 3600 * 1000, TERMINAL_MAX = 1000 };

/* What an exchange holds while it waits for, or reads from, a process. */
struct view {
    struct process *process;
    struct process_reader reader;
    bool wants_events;
    struct chunked_text event; /* on its way */
};

static void on_woken(void *context)
{
    exchange_wake(context);
}

static void leave(struct exchange *exchange)
{
    struct view *view = exchange->user;
    process_leave(view->process, &view->reader);
    process_drop(view->process);
    bytes_done(&view->event.text);
    free(view);
}

static struct view *join(struct exchange *exchange, struct process *process, uint64_t offset)
{
    struct view *view = calloc(1, sizeof *view);
    error err;
    if (!view) {
        (void) fail(&err, ERR_SYSTEM, "no memory to read from a process");
        exchange_fail(exchange, &err);
        return NULL;
    }
    view->process = process;
    view->reader = (struct process_reader){ .woken = on_woken, .context = exchange, .at = offset };
    process_join(process, &view->reader);
    process->uses++;
    exchange->user = view;
    exchange->closed = leave;
    return view;
}

/* --- events -------------------------------------------------------------------------------------
 */

static void begin_event(struct bytes *out, const char *name, uint64_t id)
{
    bytes_print(out, "event: %s\nid: %" PRIu64 "\ndata: ", name, id);
}

static void end_event(struct bytes *out, const struct bytes *json)
{
    bytes_add(out, json->data, json->size);
    bytes_add_text(out, "\n\n");
}

static void write_output(struct view *view, const struct process_record *record)
{
    auto_bytes json = { 0 };
    json_open(&json, '{');
    if (utf8_is_valid(record->bytes, record->size)) {
        json_key(&json, "data");
        json_text(&json, record->bytes, record->size);
    } else {
        json_key(&json, "data_base64");
        json_base64(&json, record->bytes, record->size);
    }
    json_close(&json, '}');
    begin_event(&view->event.text, record->stream == 2 ? "stderr" : "stdout", record->next);
    end_event(&view->event.text, &json);
}

static void write_whole(struct view *view, const char *name)
{
    auto_bytes json = { 0 };
    process_write(view->process, &json);
    begin_event(&view->event.text, name, view->reader.at);
    end_event(&view->event.text, &json);
}

/* Fills `event` with the next one. False: nothing new now. */
static bool next_event(struct view *view)
{
    struct process_record record;
    chunked_text_forget(&view->event);
    if (!view->reader.was_started && view->process->state != PROCESS_STARTING) {
        view->reader.was_started = true;
        write_whole(view, "started");
        return true;
    }
    bool stands_still = view->process->session && view->process->session->state == SESSION_PAUSED;
    if (stands_still != view->reader.knows_of_pause) {
        view->reader.knows_of_pause = stands_still;
        bytes_print(&view->event.text, "event: %s\ndata: {}\n\n",
                    stands_still ? "paused" : "resumed");
        return true;
    }
    bool is_more = process_read(view->process, &view->reader, &record);
    if (view->reader.lost > 0) {
        bytes_print(&view->event.text, "event: lost\ndata: {\"bytes\":%" PRIu64 "}\n\n",
                    view->reader.lost);
        view->reader.lost = 0;
    }
    if (is_more)
        write_output(view, &record);
    else if (view->process->state == PROCESS_ENDED && !view->reader.is_told) {
        view->reader.is_told = true;
        write_whole(view, "end");
    }
    return view->event.text.size > 0;
}

static ssize_t read_events(struct exchange *exchange, char *bytes, size_t size)
{
    struct view *view = exchange->user;
    if (chunked_text_are_taken(&view->event)) {
        if (view->reader.is_told)
            return STREAM_END;
        if (!next_event(view))
            return STREAM_LATER;
    }
    if (view->event.text.failed)
        return STREAM_BROKEN;
    return (ssize_t) chunked_text_take(&view->event, bytes, size);
}

/* --- starting -----------------------------------------------------------------------------------
 */

static void answer_process(struct exchange *exchange, const struct process *process,
                           unsigned status)
{
    struct bytes json = { 0 };
    process_write(process, &json);
    exchange_answer(exchange, status, &json);
}

static bool wants_events(const struct exchange *exchange)
{
    const char *accept = exchange_header(exchange, MHD_HTTP_HEADER_ACCEPT);
    const char *stream = exchange_query(exchange, "stream");
    return (accept && strstr(accept, "text/event-stream")) || (stream && strcmp(stream, "1") == 0);
}

static void answer_started(struct exchange *exchange)
{
    const struct view *view = exchange->user;
    const struct process *process = view->process;
    if (process->state == PROCESS_STARTING)
        exchange_wait(exchange);
    else if (process->pid == 0)
        exchange_fail(exchange, &process->failure);
    else if (view->wants_events)
        exchange_stream(exchange, read_events);
    else
        answer_process(exchange, process, MHD_HTTP_CREATED);
}

static int read_terminal(struct json_object *terminal, struct process_request *request, error *err)
{
    request->rows = 24;
    request->columns = 80;
    const struct field fields[] = {
        { "rows", FIELD_COUNT, &request->rows, TERMINAL_MAX },
        { "columns", FIELD_COUNT, &request->columns, TERMINAL_MAX },
    };
    request->has_terminal = terminal != NULL;
    return fields_read(terminal, fields, COUNT_OF(fields), err);
}

/* A request for a process, and which process it gets. */
struct beginning {
    struct exchange *exchange;
    struct order order;
    struct process *process; /* NULL: none yet */
};

/* `json` is borrowed. */
static int start(struct beginning *beginning, struct json_object *json, error *err)
{
    struct exchange *exchange = beginning->exchange;
    struct session *session = NULL;
    struct json_object *terminal = NULL;
    struct process_request request = { 0 };
    const struct field fields[] = {
        { "command", FIELD_JSON, &request.command, 0 },
        { "shell", FIELD_TEXT, &request.shell, AGENT_PAYLOAD_MAX / 2 },
        { "env", FIELD_JSON, &request.env, 0 },
        { "cwd", FIELD_TEXT, &request.folder, AGENT_PATH_MAX / 2 },
        { "tag", FIELD_TEXT, &request.tag, TAG_MAX },
        { "stdin", FIELD_FLAG, &request.has_stdin, 0 },
        { "terminal", FIELD_JSON, &terminal, 0 },
        { "timeout_ms", FIELD_COUNT, &request.timeout_ms, TIMEOUT_MAX_MS },
    };
    int done = service_session_enter(exchange->service, &exchange->caller, exchange->parameters[0],
                                     &session, err);
    if (done == 0)
        done = fields_read(json, fields, COUNT_OF(fields), err);
    if (done == 0)
        done = read_terminal(terminal, &request, err);
    const struct process_order order = { &beginning->order, session, &request };
    if (done == 0)
        done = service_process_start(exchange->service, &exchange->caller, &order,
                                     &beginning->process, err);
    bytes_done(&request.shell);
    bytes_done(&request.folder);
    bytes_done(&request.tag);
    return done == 0 ? 0 : -1;
}

/* Gives  beginning->process if this very request has started it before; NULL: it is new. */
static int find_begun(struct beginning *beginning, const struct session *session,
                      struct json_object *json, error *err)
{
    struct exchange *exchange = beginning->exchange;
    struct order *order = &beginning->order;
    exchange_order(exchange, json, order);
    int found = service_order_find(exchange->service, &exchange->caller, order, err);
    if (found == ORDER_KNOWN)
        found =
            service_process_of_order(exchange->service, session, order, &beginning->process, err);
    exchange_answer_order(exchange, order);
    return found;
}

static int begin_process(struct exchange *exchange, const struct session *session,
                         struct process **ret_process, error *err)
{
    struct json_object *json = NULL;
    struct beginning beginning = { .exchange = exchange };
    if (exchange->body_bytes > 0 && json_reader_end(&exchange->body, &json, err) < 0)
        return -1;
    json_reader_close(&exchange->body);
    int result = find_begun(&beginning, session, json, err);
    if (result == 0 && !beginning.process)
        result = start(&beginning, json, err);
    *ret_process = beginning.process;
    (void) json_object_put(json);
    return result;
}

static void post_process(struct exchange *exchange)
{
    error err;
    struct process *process;
    if (exchange->user) {
        answer_started(exchange);
        return;
    }
    const struct session *session = exchange_tombstone(exchange);
    if (!session)
        return;
    if (begin_process(exchange, session, &process, &err) < 0) {
        exchange_fail(exchange, &err);
        return;
    }
    assert(process);
    struct view *view = join(exchange, process, 0);
    if (!view)
        return;
    view->wants_events = wants_events(exchange);
    answer_started(exchange);
}

/* --- one that runs ------------------------------------------------------------------------------
 */

static struct process *exchange_process(struct exchange *exchange)
{
    const struct service *service = exchange->service;
    const struct session *session = exchange_tombstone(exchange);
    struct process *process =
        session ? process_find(service->processes, session, exchange->parameters[1]) : NULL;
    if (session && !process) {
        error err;
        (void) fail(&err, ERR_NOT_FOUND, "no process of this session is called '%.60s'",
                    exchange->parameters[1]);
        exchange_fail(exchange, &err);
    }
    return process;
}

static void get_process(struct exchange *exchange)
{
    const struct process *process = exchange_process(exchange);
    if (process)
        answer_process(exchange, process, MHD_HTTP_OK);
}

static void get_processes(struct exchange *exchange)
{
    const struct service *service = exchange->service;
    const struct session *session = exchange_tombstone(exchange);
    const char *all = exchange_query(exchange, "all");
    if (!session)
        return;
    struct bytes json = { 0 };
    json_open(&json, '{');
    json_key(&json, "processes");
    json_open(&json, '[');
    for (const struct process *each = service->processes->first; each; each = each->next)
        if (strcmp(each->session_id, session_id(session)) == 0 &&
            (each->state == PROCESS_RUNNING || (all && strcmp(all, "1") == 0)))
            process_write(each, &json);
    json_close(&json, ']');
    json_close(&json, '}');
    exchange_answer(exchange, MHD_HTTP_OK, &json);
}

static void get_process_events(struct exchange *exchange)
{
    error err;
    uint64_t offset = 0;
    const char *last = exchange_header(exchange, "Last-Event-ID");
    struct process *process = exchange_process(exchange);
    if (!process)
        return;
    if (exchange_query_count(exchange, "offset", UINT64_MAX, last ? strtoull(last, NULL, 10) : 0,
                             &offset, &err) < 0) {
        exchange_fail(exchange, &err);
        return;
    }
    if (join(exchange, process, offset))
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
        { "data", FIELD_TEXT, &data, PROCESS_INPUT_MAX },
        { "data_base64", FIELD_BASE64, &data, PROCESS_INPUT_MAX },
        { "close", FIELD_FLAG, &ends, 0 },
    };
    struct process *process = exchange_process(exchange);
    if (!process)
        return;
    int done = exchange_fields(exchange, fields, COUNT_OF(fields), &err);
    if (done == 0 && ends && process->has_terminal)
        done = fail(&err, ERR_BAD_REQUEST, "a terminal is not closed; send it Ctrl-D (\\u0004)");
    if (done == 0 && data.size > 0)
        done = process_feed(process, data.data, data.size, &err);
    if (done == 0 && ends)
        process_end_input(process);
    answer_order(exchange, process, done, &err);
}

static int read_signal(const char *name, unsigned *ret_number, error *err)
{
    static const struct {
        const char *name;
        unsigned number;
    } rows[] = {
        { "HUP", SIGHUP },   { "INT", SIGINT },   { "QUIT", SIGQUIT },   { "KILL", SIGKILL },
        { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 }, { "TERM", SIGTERM },   { "CONT", SIGCONT },
        { "STOP", SIGSTOP }, { "TSTP", SIGTSTP }, { "WINCH", SIGWINCH },
    };
    const char *word = strncmp(name, "SIG", 3) == 0 ? name + 3 : name;
    for_each(row, rows)
        if (strcmp(row->name, word) == 0) {
            *ret_number = row->number;
            return 0;
        }
    char *end;
    unsigned long number = strtoul(name, &end, 10);
    if (*name < '1' || *name > '9' || *end || number > 64)
        return fail(err, ERR_BAD_REQUEST, "'signal' is a name, as SIGTERM, or a number to 64");
    *ret_number = (unsigned) number;
    return 0;
}

static void post_signal(struct exchange *exchange)
{
    error err;
    auto_bytes name = { 0 };
    bool whole_group = false;
    unsigned number = 0;
    const struct field fields[] = {
        { "signal", FIELD_TEXT, &name, 16 },
        { "group", FIELD_FLAG, &whole_group, 0 },
    };
    struct process *process = exchange_process(exchange);
    if (!process)
        return;
    int done = exchange_fields(exchange, fields, COUNT_OF(fields), &err);
    if (done == 0)
        done = read_signal(bytes_text(&name), &number, &err);
    if (done == 0)
        done = process_signal(process, number, whole_group, &err);
    answer_order(exchange, process, done, &err);
}

static void post_resize(struct exchange *exchange)
{
    error err;
    uint64_t rows = 24;
    uint64_t columns = 80;
    const struct field fields[] = {
        { "rows", FIELD_COUNT, &rows, TERMINAL_MAX },
        { "columns", FIELD_COUNT, &columns, TERMINAL_MAX },
    };
    struct process *process = exchange_process(exchange);
    if (!process)
        return;
    int done = exchange_fields(exchange, fields, COUNT_OF(fields), &err);
    if (done == 0)
        done = process_resize(process, rows, columns, &err);
    answer_order(exchange, process, done, &err);
}

static const struct parameter start_query[] = {
    { "stream", IN_QUERY, "=0,1", "1: its events follow, as with Accept: text/event-stream" },
    { "Idempotency-Key", IN_HEADER, KEY_TYPE, KEY_TEXT },
    { 0 },
};
static const struct parameter list_query[] = {
    { "all", IN_QUERY, "=0,1", "1: those too that have ended of late" },
    { 0 },
};
static const struct parameter events_query[] = {
    { "offset", IN_QUERY, "count", "bytes of its output that have been seen" },
    { "Last-Event-ID", IN_HEADER, "string", "the same, as browsers send it" },
    { 0 },
};

/* clang-format off */
static const struct route rows[] = {
    { "POST", "/v1/sessions/{id}/processes",                   BODY_JSON, post_process,  "Starts a program, with pipes or a terminal; its events follow with Accept: text/event-stream", .query = start_query, .is_once = true, .takes = "ProcessRequest", .gives = "Process", .status = 201, .streams = true, .awaits = AWAITS_STANDING },
    { "GET",  "/v1/sessions/{id}/processes",                   BODY_NONE, get_processes, "The programs that run; ?all=1: those too that have ended of late", .query = list_query, .gives = "ProcessList", .awaits = AWAITS_STANDING },
    { "GET",  "/v1/sessions/{id}/processes/{process}",         BODY_NONE, get_process,   "A program, by id, pid or tag", .gives = "Process", .awaits = AWAITS_STANDING },
    { "GET",  "/v1/sessions/{id}/processes/{process}/events",  BODY_NONE, get_process_events, "What it prints, from ?offset= or Last-Event-ID on, and its end", .query = events_query, .mime = "text/event-stream", .streams = true, .awaits = AWAITS_STANDING },
    { "POST", "/v1/sessions/{id}/processes/{process}/stdin",   BODY_JSON, post_stdin,    "Types into it; closes its input", .takes = "ProcessInput", .may_lack_body = true, .gives = "Process", .awaits = AWAITS_STANDING },
    { "POST", "/v1/sessions/{id}/processes/{process}/signal",  BODY_JSON, post_signal,   "Sends it, or its whole group, a signal", .takes = "ProcessSignal", .gives = "Process", .awaits = AWAITS_STANDING },
    { "POST", "/v1/sessions/{id}/processes/{process}/resize",  BODY_JSON, post_resize,   "Gives its terminal another size", .takes = "TerminalSize", .may_lack_body = true, .gives = "Process", .is_repeatable = true, .awaits = AWAITS_STANDING },
};
/* clang-format on */
const struct route_table process_routes = { "processes", rows, COUNT_OF(rows), RIGHT_SESSIONS };
