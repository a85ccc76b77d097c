/* session_exec.c - runs a program in a session, with its input: events come over one connection;
 * input, sizes and signals are sent over the other. */
#include "client/client.h"
#include "client/request_body.h"
#include "client/session.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FOREVER_MS = 400 * 24 * 3600, /* times 1000: longer than any session */ ORDER_MS = 30000 };

struct execution {
    struct glb_client *client;
    const char *session;
    glb_process_options options;
    struct http_watch watch;
    char process[64];
    char *last;     /* JSON of the process, at its beginning or end */
    bool has_ended; /* `last` is that of the end */
    bool is_left;   /* a callback has left it */
    bool is_cancelled;
    uint16_t rows, columns;
};

/* ---- orders, over the other connection ---- */

struct order {
    const char *name;
    const void *data;
    size_t size;
    const struct execution *execution;
};

static void write_order(struct sink *sink, const void *what)
{
    const struct order *order = what;
    struct body body = { .sink = sink };
    sink_text(sink, "{");
    if (strcmp(order->name, "stdin") == 0 && order->size > 0) {
        body_key(&body, "data_base64");
        sink_base64(sink, order->data, order->size);
    } else if (strcmp(order->name, "stdin") == 0) {
        body_key(&body, "close");
        sink_text(sink, "true");
    } else if (strcmp(order->name, "resize") == 0) {
        body_number(&body, "rows", order->execution->rows);
        body_number(&body, "columns", order->execution->columns);
    } else {
        body_text(&body, "signal", order->data);
        body_key(&body, "group");
        sink_text(sink, "true");
    }
    sink_text(sink, "}");
}

/* Sends an order. If the program has ended meanwhile this is no failure: the event will come. */
static int send_order(struct execution *execution, const char *name, const void *data, size_t size,
                      error *err)
{
    struct http *http = NULL;
    char rest[128], path[256];
    struct order order = { name, data, size, execution };
    struct http_request request = json_post(path, write_order, &order);
    if (!execution->process[0] || execution->has_ended)
        return 0;
    (void) snprintf(rest, sizeof rest, "/processes/%s/%s", execution->process, name);
    if (session_path(path, sizeof path, execution->session, rest, err) < 0 ||
        client_spare(execution->client, &http, err) < 0)
        return -1;
    http->interrupt = -1;
    http->until = deadline_in(ORDER_MS);
    auto_text body = NULL;
    size_t length = 0;
    if (http_send(http, &request, err) < 0 || http_receive(http, err) != 0 ||
        http_read_all(http, 1 << 20, &body, &length, err) != 0) {
        http_done(http);
        return client_lost(execution->client, err);
    }
    return 0;
}

/* ---- what is polled together with the events ---- */

static int input_is_ready(void *context, error *err)
{
    struct execution *execution = context;
    const glb_process_options *options = &execution->options;
    char block[4096];
    ssize_t got = read(options->input_fd, block, sizeof block);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (got <= 0) { /* the end; EIO: a terminal was closed */
        execution->watch.fd = -1;
        if (options->has_terminal)
            return send_order(execution, "stdin", "\x04", 1, err);
        return send_order(execution, "stdin", NULL, 0, err);
    }
    size_t size = (size_t) got;
    if (options->on_input && options->on_input(options->context, block, &size) != 0) {
        execution->is_left = true;
        return fail(err, (enum error_code) GLB_E_CANCELLED, "left");
    }
    return size > 0 ? send_order(execution, "stdin", block, size, err) : 0;
}

static int look_at_size(void *context, error *err)
{
    struct execution *execution = context;
    const glb_process_options *options = &execution->options;
    uint16_t rows = execution->rows, columns = execution->columns;
    if (!options->has_terminal || !options->on_size || !execution->process[0])
        return 0;
    options->on_size(options->context, &rows, &columns);
    if (rows == execution->rows && columns == execution->columns)
        return 0;
    execution->rows = rows;
    execution->columns = columns;
    return send_order(execution, "resize", NULL, 0, err);
}

/* ---- events ---- */

static int remember(struct execution *execution, const char *json, error *err)
{
    auto_json root = json_tokener_parse(json);
    const char *id = member_text(root, "id");
    if (id)
        (void) snprintf(execution->process, sizeof execution->process, "%s", id);
    if (!id_is_plain(execution->process))
        return fail(err, ERR_PROTOCOL, "gloveboxd told of a process without an id");
    free(execution->last);
    execution->last = strdup(json);
    return execution->last ? 0 : fail(err, ERR_INTERNAL, "out of memory");
}

static int event_has_come(void *context, const char *name, const char *data, error *err)
{
    struct execution *execution = context;
    const glb_process_options *options = &execution->options;
    bool is_stdout = strcmp(name, "stdout") == 0;
    int32_t wish = 0;
    if (strcmp(name, "started") == 0 || strcmp(name, "end") == 0) {
        execution->has_ended = *name == 'e';
        if (remember(execution, data, err) < 0)
            return -1;
        execution->watch.fd =
            options->takes_input && !execution->has_ended ? options->input_fd : -1;
    }
    if (is_stdout || strcmp(name, "stderr") == 0) {
        struct output_event event = { is_stdout ? GLB_STDOUT : GLB_STDERR, options->on_output,
                                      options->context };
        if (output_event_tell(&event, data, &wish, err) < 0)
            return -1;
    } else if (options->on_event) {
        wish = options->on_event(options->context, name, data);
    }
    if (wish == 0)
        return 0;
    execution->is_left = true;
    return fail(err, (enum error_code) GLB_E_CANCELLED, "left");
}

/* The first glb_cancel() interrupts the program, the second ends the call. */
static int follow(struct execution *execution, struct http *http, error *err)
{
    struct event_reader reader = { .came = event_has_come, .context = execution };
    int result = 0;
    while (result == 0) {
        char block[8192];
        size_t got = 0;
        result = http_read(http, block, sizeof block, &got, err);
        if (result == 0 && got == 0)
            break;
        if (result == 0) {
            result = event_reader_feed(&reader, block, got, err);
        } else if (result == HTTP_INTERRUPTED && !execution->is_cancelled) {
            uint64_t count;
            (void) !read(execution->client->interrupt, &count, sizeof count);
            execution->is_cancelled = true;
            result = send_order(execution, "signal", "INT", 0, err);
        }
    }
    event_reader_done(&reader);
    if (result == HTTP_INTERRUPTED)
        return fail(err, (enum error_code) GLB_E_CANCELLED, "cancelled");
    if (result == HTTP_CLOSED || (result == 0 && !execution->has_ended))
        return client_lost(execution->client, err);
    return result;
}

static void write_start(struct sink *sink, const void *what)
{
    const struct execution *execution = what;
    const glb_process_options *options = &execution->options;
    struct body body = { .sink = sink };
    sink_text(sink, "{");
    body_list(&body, "command", options->command);
    body_text(&body, "shell", options->shell);
    body_text(&body, "cwd", options->folder);
    body_text(&body, "tag", options->tag);
    body_pairs(&body, "env", options->environment);
    body_number(&body, "timeout_ms", options->timeout_ms);
    if (options->takes_input && !options->has_terminal) {
        body_key(&body, "stdin");
        sink_text(sink, "true");
    }
    if (options->has_terminal) {
        body_key(&body, "terminal");
        sink_text(sink, "{");
        struct body inner = { .sink = sink };
        body_number(&inner, "rows", execution->rows);
        body_number(&inner, "columns", execution->columns);
        sink_text(sink, "}");
    }
    sink_text(sink, "}");
}

static int execute(struct execution *execution, const struct http_request *request, error *err)
{
    struct http *http = NULL;
    error unsent = { 0 };
    if (client_connection(execution->client, &http, err) < 0)
        return -1;
    http->until = deadline_in((int64_t) FOREVER_MS * 1000);
    http->watch = &execution->watch;
    int sent = http_send(http, request, &unsent), result = http_receive(http, err);
    if (result == HTTP_INTERRUPTED)
        result = fail(err, (enum error_code) GLB_E_CANCELLED, "cancelled");
    else if (result != 0 && sent < 0)
        *err = unsent;
    else if (result == HTTP_CLOSED)
        result = client_lost(execution->client, err);
    else if (result == 0 && http->status == 200 && http->events)
        result = follow(execution, http, err);
    else if (result == 0) {
        auto_text body = NULL;
        size_t size = 0;
        result = http_read_all(http, 1 << 20, &body, &size, err) == 0
                     ? answer_failed(http->status, body, err)
                     : -1;
    }
    http->watch = NULL;
    if (!(http->keep && http->body_ended))
        http_done(http);
    client_forget_cancels(execution->client);
    return result == 0 || execution->is_left ? 0 : -1;
}

static int check(struct execution *execution, const glb_process_options *options,
                 size_t options_size, error *err)
{
    glb_process_options *ours = &execution->options;
    if (take_options(ours, sizeof *ours, options, options_size) < 0)
        return too_new(err);
    if (!ours->command + !ours->shell + !ours->process != 2)
        return fail(err, ERR_BAD_REQUEST, "give a command, a line for the shell, or a process");
    if (ours->process && !id_is_plain(ours->process))
        return fail(err, ERR_BAD_REQUEST, "'%.60s' is no id of a process", ours->process);
    const char *const texts[] = { ours->shell ? ours->shell : "", ours->folder ? ours->folder : "",
                                  ours->tag ? ours->tag : "", NULL };
    return check_texts("the command", ours->command, err) < 0 ||
                   check_texts("the command", texts, err) < 0 ||
                   check_pairs("the variable", ours->environment, err) < 0
               ? -1
               : 0;
}

int32_t glb_session_exec(glb_client *client, const char *session,
                         const glb_process_options *options, size_t options_size, char **ret_json)
{
    error err = { 0 };
    char path[256], rest[128];
    struct execution execution = {
        .client = client, .session = session, .rows = 24, .columns = 80
    };
    struct http_request request = { .method = "POST",
                                    .path = path,
                                    .accept = "text/event-stream",
                                    .write_body = write_start,
                                    .what = &execution };
    execution.watch = (struct http_watch){ -1, input_is_ready, look_at_size, &execution };
    if (check(&execution, options, options_size, &err) < 0)
        return report(&err);
    const glb_process_options *ours = &execution.options;
    if (ours->has_terminal && ours->on_size)
        ours->on_size(ours->context, &execution.rows, &execution.columns);
    (void) snprintf(rest, sizeof rest, ours->process ? "/processes/%.60s/events" : "/processes%s",
                    ours->process ? ours->process : "");
    if (ours->process) {
        execution.rows = execution.columns = 0; /* sent as soon as the program has an id */
        request.method = "GET";
        request.write_body = NULL;
    }
    int result = session_path(path, sizeof path, session, rest, &err);
    if (result == 0)
        result = execute(&execution, &request, &err);
    if (result == 0 && ret_json)
        *ret_json = execution.last;
    else
        free(execution.last);
    return result < 0 ? report(&err) : GLB_OK;
}
