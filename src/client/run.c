/* run.c - glb_run(): writes the request, follows the stream of events to its end. */
#include "client/client.h"

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/table.h"
#include "client/request_body.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

enum {
    WAIT_MS = 25 * 3600 * 1000, /* longer than any wall limit, which the daemon enforces */
    CANCEL_MS = 5000,           /* from glb_cancel() to the end of the run */
    BACK_MS = 10000,            /* how long to wait for a service that has ended */
    BACK_LOOK_MS = 100,
    ANSWER_MAX = 64 << 20,
};

/* ---- the request ---- */

static void files_member(struct body *body, const glb_run_options *options)
{
    body_key(body, "files");
    sink_text(body->sink, "[");
    for (size_t index = 0; index < options->file_count; index++) {
        glb_file file;
        (void) take_options(&file, sizeof file,
                            (const char *) options->files + index * options->file_size,
                            options->file_size);
        sink_text(body->sink, index > 0 ? ",{" : "{");
        struct body inner = { .sink = body->sink };
        body_text(&inner, "path", file.path);
        body_key(&inner, "content_base64");
        sink_base64(body->sink, file.content, file.length);
        if (file.read_only) {
            body_key(&inner, "read_only");
            sink_text(body->sink, "true");
        }
        sink_text(body->sink, "}");
    }
    sink_text(body->sink, "]");
}

static void write_request(struct sink *sink, const void *what)
{
    const glb_run_options *options = what;
    struct body body = { .sink = sink };
    sink_text(sink, "{");
    if (options->code) {
        body_key(&body, "code");
        body_string(sink, options->code, options->code_length);
    }
    body_text(&body, "language", options->language);
    body_text(&body, "filename", options->file_name);
    body_list(&body, "command", options->command);
    body_list(&body, "args", options->arguments);
    body_text(&body, "policy", options->policy);
    body_text(&body, "template", options->template_name);
    body_limits(&body, options->limits, options->limit_count);
    body_pairs(&body, "env", options->environment);
    if (options->input) {
        body_key(&body, "stdin_base64");
        sink_base64(sink, options->input, options->input_length);
    }
    if (options->file_count > 0)
        files_member(&body, options);
    body_expectation(&body, options->expectation);
    sink_text(sink, "}");
}

/* ---- checks before the request is sent ---- */

static int check_options(glb_run_options *options, error *err)
{
    if (!options->code == !options->command)
        return fail(err, ERR_BAD_REQUEST, "give code or a command, one of them");
    if (options->code && options->code_length == 0)
        options->code_length = strlen(options->code);
    if (options->code && options->code_length == 0)
        return fail(err, ERR_BAD_REQUEST, "the code is empty; give some");
    if (options->command && !options->command[0])
        return fail(err, ERR_BAD_REQUEST, "the command is empty; give one");
    if (options->code && check_text("the code", options->code, options->code_length, err) < 0)
        return -1;
    const char *const names[] = { options->language, options->file_name, options->policy,
                                  options->template_name };
    for_each(name, names)
        if (*name && check_text("a name", *name, strlen(*name), err) < 0)
            return -1;
    if (check_texts("the command", options->command, err) < 0 ||
        check_texts("an argument", options->arguments, err) < 0 ||
        check_pairs("the variable", options->environment, err) < 0 ||
        check_limits(options->limits, options->limit_count, err) < 0)
        return -1;
    if (check_expectation(options->expectation, err) < 0)
        return -1;
    if (options->file_count > 0 && options->file_size < offsetof(glb_file, read_only))
        return fail(err, ERR_BAD_REQUEST, "file_size must be sizeof(glb_file)");
    for (size_t index = 0; index < options->file_count; index++) {
        const glb_file *file =
            (const glb_file *) ((const char *) options->files + index * options->file_size);
        if (!file->path ||
            check_text("the name of a file", file->path, strlen(file->path), err) < 0)
            return file->path ? -1 : fail(err, ERR_BAD_REQUEST, "a file has no path");
    }
    return 0;
}

/* ---- the events ---- */

struct follower {
    const glb_run_options *options;
    char id[RUN_ID_SIZE];
    char *end;      /* JSON of the result */
    bool wants_end; /* a callback asked to cancel */
    bool failed;    /* an `error` event came */
    error failure;
};

int output_event_tell(const struct output_event *told, const char *json, int32_t *ret_wish,
                      error *err)
{
    auto_json event = json_tokener_parse(json);
    json_object *data = NULL;
    int result = 0;
    if (!event)
        return fail(err, ERR_PROTOCOL, "gloveboxd sent output that is no JSON");
    if (told->on_output && json_object_object_get_ex(event, "data", &data)) {
        *ret_wish = told->on_output(told->context, told->stream, json_object_get_string(data),
                                    (size_t) json_object_get_string_len(data));
    } else if (told->on_output && json_object_object_get_ex(event, "data_base64", &data)) {
        size_t length = (size_t) json_object_get_string_len(data);
        auto_text bytes = malloc(length + 1);
        int64_t size = bytes ? base64_decode(json_object_get_string(data), length, bytes) : 0;
        if (!bytes)
            result = fail(err, ERR_INTERNAL, "out of memory");
        else if (size < 0)
            result = fail(err, ERR_PROTOCOL, "gloveboxd sent output that is not base64");
        else
            *ret_wish = told->on_output(told->context, told->stream, bytes, (size_t) size);
    }
    return result;
}

static int event_has_come(void *context, const char *name, const char *data, error *err)
{
    struct follower *follower = context;
    if (strcmp(name, "end") == 0) {
        free(follower->end);
        follower->end = strdup(data);
        return follower->end ? 0 : fail(err, ERR_INTERNAL, "out of memory");
    }
    bool is_stdout = strcmp(name, "stdout") == 0;
    if (is_stdout || strcmp(name, "stderr") == 0) {
        int32_t wish = 0;
        struct output_event told = { is_stdout ? GLB_STDOUT : GLB_STDERR,
                                     follower->options->on_output, follower->options->context };
        int result = output_event_tell(&told, data, &wish, err);
        follower->wants_end |= wish != 0;
        return result;
    }
    if (strcmp(name, "started") == 0) {
        auto_json event = json_tokener_parse(data);
        json_object *id = NULL;
        if (!event)
            return fail(err, ERR_PROTOCOL, "gloveboxd sent an event '%s' that is no JSON", name);
        if (json_object_object_get_ex(event, "id", &id))
            (void) snprintf(follower->id, sizeof follower->id, "%s", json_object_get_string(id));
    }
    if (strcmp(name, "error") == 0) {
        /* "error" is the program's own exception, or a failure of the run. */
        auto_json event = json_tokener_parse(data);
        if (json_object_object_get_ex(event, "error", NULL)) {
            follower->failed = true;
            (void) answer_failed(500, data, &follower->failure);
        }
    }
    if (follower->options->on_event)
        follower->wants_end |=
            follower->options->on_event(follower->options->context, name, data) != 0;
    return 0;
}

bool id_is_plain(const char *id)
{
    return *id && strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
                      strlen(id);
}

/* Asks for the end of the run over the other connection. The stream then brings its `end`. */
static int cancel_run(struct glb_client *client, const struct follower *follower, error *err)
{
    struct http *http = NULL;
    char path[RUN_ID_SIZE + 16];
    if (!id_is_plain(follower->id))
        return fail(err, (enum error_code) GLB_E_CANCELLED, "cancelled before the run began");
    (void) snprintf(path, sizeof path, "/v1/runs/%s", follower->id);
    if (client_spare(client, &http, err) < 0)
        return -1;
    if (!http->body_ended)
        return fail(err, (enum error_code) GLB_E_CANCELLED, "cancelled");
    http->interrupt = -1;
    http->until = deadline_in(CANCEL_MS);
    struct http_request request = { .method = "DELETE",
                                    .path = path,
                                    .accept = "application/json" };
    if (http_send(http, &request, err) < 0)
        return -1;
    auto_text body = NULL;
    size_t size = 0;
    if (http_receive(http, err) != 0 || http_read_all(http, ANSWER_MAX, &body, &size, err) != 0)
        http->keep = false;
    return 0;
}

/* Asks the service once how the run ended. Returns HTTP_CLOSED if it does not run yet. */
static int ask_again(struct glb_client *client, struct follower *follower, error *err)
{
    struct http *http = NULL;
    char path[RUN_ID_SIZE + 32];
    size_t size = 0;
    (void) snprintf(path, sizeof path, "/v1/runs/%s?wait=60", follower->id);
    struct http_request request = { .method = "GET", .path = path, .accept = "application/json" };
    http_done(&client->spare);
    if (client_spare(client, &http, err) < 0)
        return -1;
    http->interrupt = client->interrupt;
    http->until = deadline_in(BACK_MS);
    if (http_send(http, &request, err) < 0)
        return HTTP_CLOSED;
    auto_text body = NULL;
    int outcome = http_receive(http, err);
    if (outcome == 0)
        outcome = http_read_all(http, ANSWER_MAX, &body, &size, err);
    if (outcome != 0)
        return outcome;
    if (http->status != 200)
        return answer_failed(http->status, body, err);
    follower->end = take_text(&body);
    return 0;
}

/* The connection ended before the run did. A service that is started again knows from its log of
 * receipts that the run was lost, so the client asks it. */
static int ask_how_it_ended(struct glb_client *client, struct follower *follower, error *err)
{
    if (client->private)
        return client_lost(client, err);
    if (!id_is_plain(follower->id))
        return fail(err, ERR_UNAVAILABLE,
                    "gloveboxd at %.80s went away before it said that the run had begun; if it "
                    "had, its receipt will say lost (glovebox log search lost); run it again",
                    client->socket);
    deadline end = deadline_in(BACK_MS);
    int outcome = HTTP_CLOSED;
    while (outcome == HTTP_CLOSED && !deadline_has_passed(end)) {
        outcome = ask_again(client, follower, err);
        if (outcome == HTTP_CLOSED)
            (void) poll(NULL, 0, BACK_LOOK_MS);
    }
    http_done(&client->spare);
    if (outcome == HTTP_INTERRUPTED)
        return fail(err, (enum error_code) GLB_E_CANCELLED, "cancelled");
    if (outcome == 0)
        return 0;
    return fail(err, ERR_UNAVAILABLE,
                "gloveboxd at %.60s went away while %s was under way, and is not there to say how "
                "it ended; its receipt will say lost",
                client->socket, follower->id);
}

/* Reads events until `end`. At the first glb_cancel() sends a request to cancel, and waits on. */
static int follow(struct glb_client *client, struct http *http, struct follower *follower,
                  error *err)
{
    struct event_reader reader = { .came = event_has_come, .context = follower };
    bool cancelled = false;
    int result = 0;
    while (result == 0) {
        char block[8192];
        size_t got = 0;
        result = http_read(http, block, sizeof block, &got, err);
        if (result == 0 && got == 0)
            break;
        if (result == 0)
            result = event_reader_feed(&reader, block, got, err);
        bool wish = result == HTTP_INTERRUPTED || (follower->wants_end && !follower->end);
        if (result < 0 || result == HTTP_CLOSED || !wish || (cancelled && result == 0))
            continue;
        if (cancelled || atomic_load(&client->cancels) > 1) { /* the second one: do not wait */
            result = fail(err, (enum error_code) GLB_E_CANCELLED, "cancelled");
            continue;
        }
        uint64_t count;
        (void) !read(client->interrupt, &count, sizeof count);
        cancelled = true;
        http->until = deadline_in(CANCEL_MS);
        result = cancel_run(client, follower, err);
    }
    event_reader_done(&reader);
    if (result == HTTP_CLOSED && !follower->end)
        return ask_how_it_ended(client, follower, err);
    return result < 0 ? -1 : 0;
}

static int receive_outcome(struct glb_client *client, struct http *http, struct follower *follower,
                           error *err)
{
    int result = http_receive(http, err);
    if (result == HTTP_CLOSED)
        return ask_how_it_ended(client, follower, err);
    if (result == HTTP_INTERRUPTED)
        return fail(err, (enum error_code) GLB_E_CANCELLED, "cancelled");
    if (result < 0)
        return -1;
    if (http->status == 200 && http->events) {
        if (follow(client, http, follower, err) < 0)
            return -1;
        if (!follower->end && follower->failed) {
            *err = follower->failure;
            return -1;
        }
        return follower->end
                   ? 0
                   : fail(err, ERR_PROTOCOL, "gloveboxd ended the stream without a result");
    }
    auto_text body = NULL;
    size_t size = 0;
    result = http_read_all(http, ANSWER_MAX, &body, &size, err);
    if (result != 0)
        return result < 0 ? -1 : ask_how_it_ended(client, follower, err);
    if (http->status < 200 || http->status > 299)
        return answer_failed(http->status, body, err);
    follower->end = take_text(&body); /* 202: it waits for an approval */
    return 0;
}

/* glb_cancel() is for one run: one that came too late must not cancel the next. */
void client_forget_cancels(struct glb_client *client)
{
    uint64_t count;
    atomic_store(&client->cancels, 0);
    (void) !read(client->interrupt, &count, sizeof count);
}

int client_run(struct glb_client *client, const struct http_request *request,
               const glb_run_options *options, struct glb_outcome **ret_outcome, error *err)
{
    struct http *http = NULL;
    struct follower follower = { .options = options };
    if (client_connection(client, &http, err) < 0)
        return -1;
    error unsent = { 0 };
    http->until = deadline_in(WAIT_MS);
    int sent = http_send(http, request, &unsent);
    int result = receive_outcome(client, http, &follower, err);
    /* If the request was refused while it was being sent, there is still an answer. */
    if (sent < 0 && result < 0 && err->code == ERR_PROTOCOL)
        *err = unsent;
    if (result == 0) {
        result = outcome_parse(follower.end, ret_outcome, err);
        follower.end = NULL;
    }
    /* If a private spawner could not build the sandbox, its log says why, and nothing has run. */
    if (result == 0 && client->private && glb_outcome_status(*ret_outcome) == GLB_STATUS_LOST &&
        launch_has_complained(&client->launch, err)) {
        glb_outcome_free(*ret_outcome);
        *ret_outcome = NULL;
        result = -1;
    }
    free(follower.end);
    if (result < 0 && !(http->keep && http->body_ended))
        http_done(http); /* the beginning of the next answer is unknown */
    client_forget_cancels(client);
    return result;
}

int32_t glb_run(glb_client *client, const glb_run_options *options, size_t options_size,
                glb_outcome **ret_outcome)
{
    error err = { 0 };
    glb_run_options ours;
    if (take_options(&ours, sizeof ours, options, options_size) < 0)
        (void) too_new(&err);
    struct http_request request = { .method = "POST",
                                    .path = "/v1/runs",
                                    .accept = "text/event-stream",
                                    .write_body = write_request,
                                    .what = &ours };
    if (err.code == ERR_NONE && check_options(&ours, &err) == 0 &&
        client_run(client, &request, &ours, ret_outcome, &err) == 0)
        return GLB_OK;
    return report(&err);
}
