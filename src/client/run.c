/* run.c - glb_run(): writes the request, follows the stream of events to its end. */
#include "client/client.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "client/wire_text.h"
#include "model/limits.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum {
    WAIT_MS = 25 * 3600 * 1000, /* longer than any wall limit: the daemon holds that one */
    CANCEL_MS = 5000,           /* from the wish to cancel to the end of the run */
    BACK_MS = 10000,            /* how long a service that went away is waited for */
    BACK_LOOK_MS = 100,
    ANSWER_MOST = 64 << 20,
};

/* ---- the request ---- */

struct comma {
    struct sink *sink;
    bool needed;
};

static void key(struct comma *comma, const char *name)
{
    if (comma->needed)
        sink_text(comma->sink, ",");
    comma->needed = true;
    sink_json_string(comma->sink, name, strlen(name));
    sink_text(comma->sink, ":");
}

static void text_member(struct comma *comma, const char *name, const char *text)
{
    if (!text)
        return;
    key(comma, name);
    sink_json_string(comma->sink, text, strlen(text));
}

static void list_member(struct comma *comma, const char *name, const char *const *list)
{
    if (!list)
        return;
    key(comma, name);
    sink_text(comma->sink, "[");
    for (size_t index = 0; list[index]; index++) {
        sink_text(comma->sink, index > 0 ? "," : "");
        sink_json_string(comma->sink, list[index], strlen(list[index]));
    }
    sink_text(comma->sink, "]");
}

static void limits_member(struct comma *comma, const glb_run_options *options)
{
    key(comma, "limits");
    sink_text(comma->sink, "{");
    struct comma inner = { .sink = comma->sink };
    for (size_t index = 0; index < options->limit_count; index++) {
        const struct limit_row *row = &limit_rows[limit_find(options->limits[index].name)];
        unsigned long long value = options->limits[index].value;
        char text[48];
        key(&inner, row->json_name);
        if (row->unit == UNIT_MILLI)
            (void) snprintf(text, sizeof text, "%llu.%03llu", value / 1000, value % 1000);
        else
            (void) snprintf(text, sizeof text, "%llu", value);
        sink_text(comma->sink, text);
    }
    sink_text(comma->sink, "}");
}

static void environment_member(struct comma *comma, const char *const *environment)
{
    key(comma, "env");
    sink_text(comma->sink, "{");
    for (size_t index = 0; environment[index]; index++) {
        const char *equals = strchr(environment[index], '=');
        sink_text(comma->sink, index > 0 ? "," : "");
        sink_json_string(comma->sink, environment[index], (size_t) (equals - environment[index]));
        sink_text(comma->sink, ":");
        sink_json_string(comma->sink, equals + 1, strlen(equals + 1));
    }
    sink_text(comma->sink, "}");
}

static void files_member(struct comma *comma, const glb_run_options *options)
{
    key(comma, "files");
    sink_text(comma->sink, "[");
    for (size_t index = 0; index < options->file_count; index++) {
        glb_file file;
        (void) take_options(&file, sizeof file,
                            (const char *) options->files + index * options->file_size,
                            options->file_size);
        sink_text(comma->sink, index > 0 ? ",{" : "{");
        struct comma inner = { .sink = comma->sink };
        text_member(&inner, "path", file.path);
        key(&inner, "content_base64");
        sink_base64(comma->sink, file.content, file.length);
        if (file.read_only) {
            key(&inner, "read_only");
            sink_text(comma->sink, "true");
        }
        sink_text(comma->sink, "}");
    }
    sink_text(comma->sink, "]");
}

static void write_request(struct sink *sink, const void *what)
{
    const glb_run_options *options = what;
    struct comma comma = { .sink = sink };
    sink_text(sink, "{");
    if (options->code) {
        key(&comma, "code");
        sink_json_string(sink, options->code, options->code_length);
    }
    text_member(&comma, "language", options->language);
    text_member(&comma, "filename", options->file_name);
    list_member(&comma, "command", options->command);
    list_member(&comma, "args", options->arguments);
    text_member(&comma, "policy", options->policy);
    text_member(&comma, "template", options->template_name);
    if (options->limit_count > 0)
        limits_member(&comma, options);
    if (options->environment && options->environment[0])
        environment_member(&comma, options->environment);
    if (options->input) {
        key(&comma, "stdin_base64");
        sink_base64(sink, options->input, options->input_length);
    }
    if (options->file_count > 0)
        files_member(&comma, options);
    sink_text(sink, "}");
}

/* ---- what can be wrong with it before anybody is asked ---- */

static int check_text(const char *what, const char *text, size_t size, error *err)
{
    size_t bad = text_first_bad_byte(text, size);
    if (bad == size)
        return 0;
    size_t line = 1;
    for (size_t at = 0; at < bad; at++)
        line += text[at] == '\n';
    if (text[bad] == '\0')
        return fail(
            err, ERR_BAD_REQUEST,
            "%s has a NUL byte at offset %zu (line %zu); is it a text file? remove the byte", what,
            bad, line);
    return fail(err, ERR_BAD_REQUEST,
                "%s is not UTF-8 at offset %zu (line %zu, byte 0x%02x); convert it: iconv -t UTF-8",
                what, bad, line, (unsigned char) text[bad]);
}

static int check_list(const char *what, const char *const *list, error *err)
{
    for (size_t index = 0; list && list[index]; index++)
        if (check_text(what, list[index], strlen(list[index]), err) < 0)
            return -1;
    return 0;
}

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
    if (check_list("the command", options->command, err) < 0 ||
        check_list("an argument", options->arguments, err) < 0 ||
        check_list("an environment variable", options->environment, err) < 0)
        return -1;
    for (size_t index = 0; options->environment && options->environment[index]; index++)
        if (!strchr(options->environment[index], '='))
            return fail(err, ERR_BAD_REQUEST, "the variable '%s' has no value; write NAME=VALUE",
                        options->environment[index]);
    for (size_t index = 0; index < options->limit_count; index++)
        if (limit_find(options->limits[index].name) == LIMITS)
            return fail(err, ERR_LIMIT, "no limit is named '%s'; see glovebox run --help",
                        options->limits[index].name);
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

/* stdout, stderr: {"data":"text"} or {"data_base64":"…"} */
static int hand_out_output(struct follower *follower, int32_t stream, json_object *event,
                           error *err)
{
    if (!follower->options->on_output)
        return 0;
    json_object *data = NULL;
    int32_t answer = 0;
    if (json_object_object_get_ex(event, "data", &data)) {
        answer = follower->options->on_output(follower->options->context, stream,
                                              json_object_get_string(data),
                                              (size_t) json_object_get_string_len(data));
    } else if (json_object_object_get_ex(event, "data_base64", &data)) {
        size_t length = (size_t) json_object_get_string_len(data);
        auto_text bytes = malloc(length + 1);
        if (!bytes)
            return fail(err, ERR_INTERNAL, "out of memory");
        int64_t size = base64_decode(json_object_get_string(data), length, bytes);
        if (size < 0)
            return fail(err, ERR_PROTOCOL, "gloveboxd sent output that is not base64");
        answer =
            follower->options->on_output(follower->options->context, stream, bytes, (size_t) size);
    }
    follower->wants_end |= answer != 0;
    return 0;
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
    if (is_stdout || strcmp(name, "stderr") == 0 || strcmp(name, "started") == 0) {
        json_object *event = json_tokener_parse(data);
        if (!event)
            return fail(err, ERR_PROTOCOL, "gloveboxd sent an event '%s' that is no JSON", name);
        json_object *id = NULL;
        int result = 0;
        if (strcmp(name, "started") != 0)
            result = hand_out_output(follower, is_stdout ? GLB_STDOUT : GLB_STDERR, event, err);
        else if (json_object_object_get_ex(event, "id", &id))
            (void) snprintf(follower->id, sizeof follower->id, "%s", json_object_get_string(id));
        json_object_put(event);
        if (result < 0 || strcmp(name, "started") != 0)
            return result;
    }
    if (strcmp(name, "error") == 0) {
        /* Two things have this name: the program's own exception, and a failure of the run. */
        json_object *event = json_tokener_parse(data);
        json_object *inner = NULL;
        if (event && json_object_object_get_ex(event, "error", &inner)) {
            follower->failed = true;
            (void) answer_failed(500, data, &follower->failure);
        }
        json_object_put(event);
    }
    if (follower->options->on_event)
        follower->wants_end |=
            follower->options->on_event(follower->options->context, name, data) != 0;
    return 0;
}

static bool id_is_plain(const char *id)
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
    if (http_receive(http, err) != 0 || http_read_all(http, ANSWER_MOST, &body, &size, err) != 0)
        http->keep = false;
    return 0;
}

/* One try to hear from the service how the run ended. Returns HTTP_CLOSED if it is not back yet. */
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
        outcome = http_read_all(http, ANSWER_MOST, &body, &size, err);
    if (outcome != 0)
        return outcome;
    if (http->status != 200)
        return answer_failed(http->status, body, err);
    follower->end = take_text(&body);
    return 0;
}

/* The connection ended before the run did. A service that is started again knows from its log of
 * receipts that the run was lost; who does not come back cannot say so. */
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

/* Reads events until `end`; turns the first wish to cancel into a request and waits on. */
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
        if (cancelled || atomic_load(&client->cancels) > 1) { /* the second wish: do not wait */
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
    result = http_read_all(http, ANSWER_MOST, &body, &size, err);
    if (result != 0)
        return result < 0 ? -1 : ask_how_it_ended(client, follower, err);
    if (http->status < 200 || http->status > 299)
        return answer_failed(http->status, body, err);
    follower->end = take_text(&body); /* 202: it waits for an approval */
    return 0;
}

/* A wish to cancel is for one run: what came too late is not for the next one. */
static void forget_cancels(struct glb_client *client)
{
    uint64_t count;
    atomic_store(&client->cancels, 0);
    (void) !read(client->interrupt, &count, sizeof count);
}

static int run(struct glb_client *client, const glb_run_options *options,
               struct glb_outcome **ret_outcome, error *err)
{
    struct http *http = NULL;
    struct follower follower = { .options = options };
    if (client_connection(client, &http, err) < 0)
        return -1;
    error unsent = { 0 };
    struct http_request request = { .method = "POST",
                                    .path = "/v1/runs",
                                    .accept = "text/event-stream",
                                    .write_body = write_request,
                                    .what = options };
    http->until = deadline_in(WAIT_MS);
    int sent = http_send(http, &request, &unsent);
    int result = receive_outcome(client, http, &follower, err);
    /* A request that was refused while it was being sent has its answer all the same. */
    if (sent < 0 && result < 0 && err->code == ERR_PROTOCOL)
        *err = unsent;
    if (result == 0) {
        result = outcome_parse(follower.end, ret_outcome, err);
        follower.end = NULL;
    }
    /* A private spawner that could not build the sandbox has said why, and nothing has run. */
    if (result == 0 && client->private && glb_outcome_status(*ret_outcome) == GLB_STATUS_LOST &&
        launch_has_complained(&client->launch, err)) {
        glb_outcome_free(*ret_outcome);
        *ret_outcome = NULL;
        result = -1;
    }
    free(follower.end);
    if (result < 0 && !(http->keep && http->body_ended))
        http_done(http); /* nobody knows where the next answer begins */
    forget_cancels(client);
    return result;
}

int32_t glb_run(glb_client *client, const glb_run_options *options, size_t options_size,
                glb_outcome **ret_outcome)
{
    error err = { 0 };
    glb_run_options ours;
    if (take_options(&ours, sizeof ours, options, options_size) < 0)
        (void) fail(&err, ERR_BAD_REQUEST, "an option is newer than this libglovebox (%s)",
                    GLOVEBOX_VERSION);
    else if (check_options(&ours, &err) == 0 && run(client, &ours, ret_outcome, &err) == 0)
        return GLB_OK;
    return report(&err);
}
