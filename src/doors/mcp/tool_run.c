/* tool_run.c - run_code, execute_python and run_command; run_status and run_cancel. */
#include "doors/mcp/mcp.h"
#include "engine/service/service_contexts.h"
#include "json/writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PROGRESS_MS = 1000 };

static void begin(struct mcp_call *call);

/* --- follow a run ----------------------------------------------------------------------------- */

static void on_woken(void *context)
{
    struct mcp_call *call = context;
    const struct watch *watch = call->work.watch;
    if (!watch || watch_is_over(watch) || call->is_cancelled)
        exchange_wake(call->exchange);
}

static void on_cut(void *context)
{
    exchange_cut(((struct mcp_call *) context)->exchange);
}

/* A call without a handshake, and any call of a stdio process, ends with its connection; what a
 * handshake has begun goes on. */
static struct watcher watcher_of(struct mcp_call *call, bool begins)
{
    bool stays = call->era == ERA_HANDSHAKE && !call->process;
    return (struct watcher){ .context = call,
                             .woken = on_woken,
                             .cut = on_cut,
                             .hangup = !begins ? HANGUP_LEAVES
                                       : stays ? HANGUP_DETACHES
                                               : HANGUP_CANCELS };
}

/* The client's user has answered on the stream of the call. */
static void answered(struct mcp_call *call)
{
    struct mcp_work *work = &call->work;
    if (!call->client_answer && !call->is_cancelled)
        return;
    call->proceed = NULL;
    if (mcp_approval_hear(call, work->approval) < 0)
        return;
    watch_close(work->watch);
    work->watch = NULL;
    begin(call);
}

static void conclude(struct mcp_call *call)
{
    const struct watch *watch = call->work.watch;
    auto_json result = NULL;
    error err;
    bool is_pending = watch_status(watch) == RUN_PENDING_APPROVAL && !watch_is_lost(watch);
    if (is_pending &&
        json_read(watch_result(watch)->data, watch_result(watch)->size, &result, &err) == 0 &&
        mcp_approval_ask(call, member_text(result, "approval"))) {
        call->proceed = answered;
        return;
    }
    mcp_run_tell(call, watch);
}

void mcp_run_state_print(const struct watch *watch, char *text, size_t size)
{
    uint64_t cpu_us = 0, memory_bytes = 0;
    int at = snprintf(text, size, "%s: %s", watch_id(watch), watch_state(watch));
    if (watch_usage(watch, &cpu_us, &memory_bytes))
        at +=
            snprintf(text + at, size - (size_t) at, ", %" PRIu64 ".%" PRIu64 " s of processor time",
                     cpu_us / 1000000, cpu_us / 100000 % 10);
    if (memory_bytes > 0)
        (void) snprintf(text + at, size - (size_t) at, ", at most %" PRIu64 " MiB of memory",
                        (memory_bytes >> 20) + 1);
}

static void tell_progress(struct mcp_call *call)
{
    char message[160];
    mcp_run_state_print(call->work.watch, message, sizeof message);
    mcp_progress(call, message);
}

static bool becomes_task(struct mcp_call *call)
{
    return !call->is_cancelled && mcp_may_be_task(call) && deadline_has_passed(call->patience) &&
           mcp_run_becomes_task(call);
}

static void follow(struct mcp_call *call)
{
    struct mcp_work *work = &call->work;
    if (call->is_cancelled && !work->is_told) {
        work->is_told = true;
        watch_cancel(work->watch);
    }
    if (watch_is_over(work->watch)) {
        conclude(call);
        return;
    }
    if (becomes_task(call))
        return;
    if (call->is_stream && call->progress_token)
        tell_progress(call);
    if (call->is_stream && call->progress_token)
        mcp_call_look_at(call, deadline_in(PROGRESS_MS));
}

/* Takes the watch; NULL: it failed. */
static void followed(struct mcp_call *call, struct watch *watch, const error *err)
{
    call->work.watch = watch;
    if (!watch) {
        mcp_tool_fail(call, err);
        return;
    }
    call->proceed = follow;
    if (mcp_may_be_task(call))
        mcp_call_look_at(call, call->patience);
    follow(call);
}

/* --- begin a run ------------------------------------------------------------------------------ */

struct cell_starter {
    struct run_starter starter;
    const char *session, *context;
    struct json_object *json; /* NULL: already taken */
};

static int start_cell(struct run_starter *starter, const char *id, struct run **ret_run, error *err)
{
    struct cell_starter *own = (struct cell_starter *) starter;
    const struct cell_order order = {
        .session = own->session, .context = own->context, .id = id, .request = own->json
    };
    own->json = NULL;
    return service_cell_begin(starter->service, starter->caller, &order, ret_run, err);
}

static void copy(const struct mcp_call *call, const char *from, struct json_object *to,
                 const char *name)
{
    struct json_object *value = json_member(call->arguments, from);
    if (value)
        (void) json_object_object_add(to, name, json_object_get(value));
}

static void add_limits(const struct mcp_call *call, struct json_object *request)
{
    auto_json limits = json_object_new_object();
    copy(call, "timeout_ms", limits, "wall_ms");
    if (json_object_object_length(limits) > 0)
        (void) json_object_object_add(request, "limits", take_json(&limits));
}

static void run_cell(struct mcp_call *call)
{
    struct mcp_work *work = &call->work;
    struct exchange *exchange = call->exchange;
    const char *command = member_text(call->arguments, "command");
    const char *language = member_text(call->arguments, "language");
    struct cell_starter own = { { start_cell, exchange->service, &exchange->caller },
                                work->session,
                                command    ? "bash"
                                : language ? language
                                           : "python",
                                json_object_new_object() };
    struct watcher watcher = watcher_of(call, true);
    struct order order = { 0 };
    struct watch *watch = NULL;
    error err;
    copy(call, command ? "command" : "code", own.json, "code");
    copy(call, "approval_id", own.json, "approval");
    add_limits(call, own.json);
    int result = service_start_once(&own.starter, &order, &watcher, &watch, &err);
    (void) json_object_put(own.json);
    followed(call, result < 0 ? NULL : watch, &err);
}

static struct json_object *shell_of(const char *command)
{
    struct json_object *list = json_object_new_array();
    (void) json_object_array_add(list, json_object_new_string("/bin/sh"));
    (void) json_object_array_add(list, json_object_new_string("-c"));
    (void) json_object_array_add(list, json_object_new_string(command));
    return list;
}

/* Python code runs as a cell, so that figures and the last value are returned. */
static bool is_cell(const struct mcp_call *call)
{
    const char *language = member_text(call->arguments, "language");
    return !member_text(call->arguments, "command") &&
           (!language || strcmp(language, "python") == 0) && !member_text(call->arguments, "stdin");
}

static void run_alone(struct mcp_call *call)
{
    struct exchange *exchange = call->exchange;
    struct run_order order = { .watcher = watcher_of(call, true),
                               .json = json_object_new_object() };
    const char *command = member_text(call->arguments, "command");
    struct watch *watch = NULL;
    error err;
    copy(call, "code", order.json, "code");
    copy(call, "language", order.json, "language");
    copy(call, "policy", order.json, "policy");
    copy(call, "stdin", order.json, "stdin");
    copy(call, "files", order.json, "files");
    copy(call, "approval_id", order.json, "approval");
    add_limits(call, order.json);
    if (command)
        (void) json_object_object_add(order.json, "command", shell_of(command));
    else if (!member_text(call->arguments, "language"))
        (void) json_object_object_add(order.json, "language", json_object_new_string("python"));
    if (is_cell(call))
        (void) json_object_object_add(order.json, "mode", json_object_new_string("cell"));
    int result = service_run(exchange->service, &exchange->caller, &order, &watch, &err);
    followed(call, result < 0 ? NULL : watch, &err);
}

static void begin(struct mcp_call *call)
{
    if (call->work.session[0])
        run_cell(call);
    else
        run_alone(call);
}

static void run(struct mcp_call *call)
{
    bool is_in_session = call->work.session[0] != '\0';
    error err;
    if (is_in_session &&
        (json_member(call->arguments, "stdin") || json_member(call->arguments, "files"))) {
        (void) fail(&err, ERR_BAD_REQUEST,
                    "stdin and files are only for runs without a session; use file_write");
        mcp_tool_fail(call, &err);
    } else if (call->work.is_named && json_member(call->arguments, "policy")) {
        (void) fail(&err, ERR_BAD_REQUEST,
                    "the policy of a session was chosen when it began; leave policy out");
        mcp_tool_fail(call, &err);
    } else {
        begin(call);
    }
}

void mcp_run_code(struct mcp_call *call)
{
    char state[MCP_STATE_SIZE];
    int asked = mcp_state_read(call, state);
    if (asked < 0 || (asked > 0 && mcp_approval_hear(call, state) < 0))
        return;
    mcp_session_use(call, run);
}

/* Runs code as in an interactive interpreter. */
void mcp_python_code(struct mcp_call *call)
{
    (void) json_object_object_add(call->arguments, "session", json_object_new_string("mine"));
    mcp_session_use(call, run);
}

/* --- an existing run -------------------------------------------------------------------------- */

static struct watch *find(struct mcp_call *call, error *err)
{
    struct exchange *exchange = call->exchange;
    const struct watcher watcher = watcher_of(call, false);
    return service_watch(exchange->service, &exchange->caller,
                         member_text(call->arguments, "run_id"), &watcher, err);
}

static void tell_state(struct mcp_call *call)
{
    const struct watch *watch = call->work.watch;
    char text[160];
    (void) snprintf(text, sizeof text,
                    "%s is %s. Ask again with run_status, or end it with run_cancel.",
                    watch_id(watch), watch_state(watch));
    struct bytes *out = mcp_result_open_text(call, text);
    json_open_field(out, "structuredContent", '{');
    json_string_field(out, "id", watch_id(watch));
    json_string_field(out, "status", watch_state(watch));
    json_key(out, "url");
    bytes_print(out, "\"/v1/runs/%s\"", watch_id(watch));
    json_close(out, '}');
    json_flag_field(out, "isError", false);
    mcp_result_close(call);
}

/* Waits for the end as long as the call wants. */
static void look(struct mcp_call *call)
{
    struct json_object *seconds = json_member(call->arguments, "wait_seconds");
    int64_t wait_ms = seconds ? json_object_get_int64(seconds) * 1000 : 0;
    if (watch_is_over(call->work.watch))
        mcp_run_tell(call, call->work.watch);
    else if (call->is_cancelled || now_ms() - call->began_ms >= wait_ms)
        tell_state(call);
    else
        mcp_call_look_at(call, (deadline){ call->began_ms + wait_ms });
}

void mcp_run_status(struct mcp_call *call)
{
    error err;
    call->work.watch = find(call, &err);
    if (!call->work.watch) {
        mcp_tool_fail(call, &err);
        return;
    }
    call->proceed = look;
    look(call);
}

void mcp_run_cancel(struct mcp_call *call)
{
    error err;
    struct watch *watch = find(call, &err);
    if (watch)
        watch_cancel(watch);
    followed(call, watch, &err);
}
