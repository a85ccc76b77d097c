/* session.c - makes, lists and ends sessions, runs cells in them, and copies files in and out. Each
 * call is a request of the REST interface, whose JSON it gives. */
#include "client/session.h"
#include "client/client.h"
#include "client/request_body.h"

#include "base/cleanup.h"
#include "http1/percent_encode.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    ANSWER_MS = 90000, /* a new session waits 60 s for a slot before it fails */
    ANSWER_MAX = 64 << 20
};

void glb_text_free(char *text)
{
    free(text);
}

int client_ask(struct glb_client *client, const struct http_request *request, char **ret_text,
               error *err)
{
    struct http *http = NULL;
    error unsent = { 0 };
    if (client_connection(client, &http, err) < 0)
        return -1;
    int sent = http_send(http, request, &unsent);
    size_t size = 0;
    auto_text text = NULL;
    http->until = deadline_in(ANSWER_MS);
    int result = http_receive(http, err);
    if (result == 0)
        result = http_read_all(http, ANSWER_MAX, &text, &size, err);
    if (result == HTTP_INTERRUPTED)
        result = fail(err, (enum error_code) GLB_E_CANCELLED, "cancelled");
    else if (sent < 0 && result != 0)
        *err = unsent;
    else if (result == HTTP_CLOSED)
        result = client_lost(client, err);
    else if (result == 0 && (http->status < 200 || http->status > 299))
        return answer_failed(http->status, text, err);
    if (sent < 0 || result != 0) {
        http_done(http); /* the beginning of the next answer is unknown */
        return -1;
    }
    if (ret_text)
        *ret_text = take_text(&text);
    return 0;
}

int session_path(char *path, size_t size, const char *session, const char *rest, error *err)
{
    if (!session || !id_is_plain(session))
        return fail(err, ERR_BAD_REQUEST, "'%.60s' is no id of a session; glovebox session list",
                    session ? session : "");
    int length = snprintf(path, size, "/v1/sessions/%s%s", session, rest);
    if (length < 0 || (size_t) length >= size)
        return fail(err, ERR_BAD_REQUEST, "'%.60s…' is too long", rest);
    return 0;
}

int32_t session_ask(struct glb_client *client, const char *method, const char *session,
                    const char *rest, char **ret_json)
{
    error err = { 0 };
    char path[512];
    struct http_request request = { .method = method, .path = path, .accept = "application/json" };
    bool is_done = session_path(path, sizeof path, session, rest, &err) == 0 &&
                   client_ask(client, &request, ret_json, &err) == 0;
    return is_done ? GLB_OK : report(&err);
}

/* ---- life ---- */

static void write_session(struct sink *sink, const void *what)
{
    const glb_session_options *options = what;
    struct body body = { .sink = sink };
    sink_text(sink, "{");
    body_text(&body, "policy", options->policy);
    body_text(&body, "template", options->template_name);
    body_text(&body, "cwd", options->folder);
    body_limits(&body, options->limits, options->limit_count);
    body_pairs(&body, "env", options->environment);
    body_pairs(&body, "metadata", options->metadata);
    body_seconds(&body, "idle_seconds", options->idle_ms);
    body_seconds(&body, "ttl_seconds", options->lifetime_ms);
    sink_text(sink, "}");
}

int32_t glb_session_new(glb_client *client, const glb_session_options *options, size_t options_size,
                        char **ret_json)
{
    error err = { 0 };
    glb_session_options ours;
    struct http_request request = json_post("/v1/sessions", write_session, &ours);
    int result = take_options(&ours, sizeof ours, options, options_size) < 0 ? too_new(&err) : 0;
    const char *const texts[] = { ours.policy ? ours.policy : "",
                                  ours.template_name ? ours.template_name : "",
                                  ours.folder ? ours.folder : "", NULL };
    if (result < 0 || check_texts("a name", texts, &err) < 0 ||
        check_pairs("the variable", ours.environment, &err) < 0 ||
        check_pairs("the metadata", ours.metadata, &err) < 0 ||
        check_limits(ours.limits, ours.limit_count, &err) < 0 ||
        client_ask(client, &request, ret_json, &err) < 0)
        return report(&err);
    return GLB_OK;
}

int32_t glb_session_list(glb_client *client, const char *state, const char *cursor, char **ret_json)
{
    error err = { 0 };
    char path[256];
    struct http_request request = { .method = "GET", .path = path, .accept = "application/json" };
    if ((state && !id_is_plain(state)) || (cursor && !id_is_plain(cursor)) ||
        (size_t) snprintf(path, sizeof path, "/v1/sessions?limit=1000%s%s%s%s",
                          state ? "&state=" : "", state ? state : "", cursor ? "&cursor=" : "",
                          cursor ? cursor : "") >= sizeof path) {
        (void) fail(&err, ERR_BAD_REQUEST, "'%.40s' is no state of sessions",
                    state ? state : cursor);
        return report(&err);
    }
    return client_ask(client, &request, ret_json, &err) < 0 ? report(&err) : GLB_OK;
}

int32_t glb_session_get(glb_client *client, const char *session, char **ret_json)
{
    return session_ask(client, "GET", session, "", ret_json);
}

static void write_nothing(struct sink *sink, const void *what)
{
    (void) what;
    sink_text(sink, "{}");
}

int32_t glb_session_touch(glb_client *client, const char *session, char **ret_json)
{
    error err = { 0 };
    char path[256];
    struct http_request request = {
        .method = "PATCH", .path = path, .accept = "application/json", .write_body = write_nothing
    };
    if (session_path(path, sizeof path, session, "", &err) < 0 ||
        client_ask(client, &request, ret_json, &err) < 0)
        return report(&err);
    return GLB_OK;
}

int32_t glb_session_kill(glb_client *client, const char *session, char **ret_json)
{
    return session_ask(client, "DELETE", session, "", ret_json);
}

int32_t glb_session_pause(glb_client *client, const char *session, int32_t files_only,
                          char **ret_json)
{
    const char *rest = files_only ? "/pause?keep=files" : "/pause";
    return session_ask(client, "POST", session, rest, ret_json);
}

int32_t glb_session_resume(glb_client *client, const char *session, char **ret_json)
{
    return session_ask(client, "POST", session, "/resume", ret_json);
}

/* ---- cells ---- */

static void write_cell(struct sink *sink, const void *what)
{
    const glb_cell_options *options = what;
    struct body body = { .sink = sink };
    sink_text(sink, "{");
    body_key(&body, "code");
    body_string(sink, options->code, options->code_length);
    body_limits(&body, options->limits, options->limit_count);
    body_expectation(&body, options->expectation);
    sink_text(sink, "}");
}

static int check_cell(glb_cell_options *options, error *err)
{
    if (!options->code)
        return fail(err, ERR_BAD_REQUEST, "the cell has no code; give some");
    if (options->code_length == 0)
        options->code_length = strlen(options->code);
    if (!options->in)
        options->in = "python";
    if (!id_is_plain(options->in))
        return fail(err, ERR_BAD_REQUEST, "'%.60s' is no context; name a language", options->in);
    if (check_text("the code", options->code, options->code_length, err) < 0 ||
        check_expectation(options->expectation, err) < 0)
        return -1;
    return check_limits(options->limits, options->limit_count, err);
}

int32_t glb_session_run(glb_client *client, const char *session, const glb_cell_options *options,
                        size_t options_size, glb_outcome **ret_outcome)
{
    error err = { 0 };
    glb_cell_options ours;
    char rest[128];
    char path[256];
    int result = take_options(&ours, sizeof ours, options, options_size) < 0
                     ? too_new(&err)
                     : check_cell(&ours, &err);
    glb_run_options callbacks = { .on_output = ours.on_output,
                                  .on_event = ours.on_event,
                                  .context = ours.context };
    struct http_request request = { .method = "POST",
                                    .path = path,
                                    .accept = "text/event-stream",
                                    .write_body = write_cell,
                                    .what = &ours };
    if (result == 0)
        (void) snprintf(rest, sizeof rest, "/contexts/%.80s/run", ours.in);
    if (result < 0 || session_path(path, sizeof path, session, rest, &err) < 0 ||
        client_run(client, &request, &callbacks, ret_outcome, &err) < 0)
        return report(&err);
    return GLB_OK;
}

/* ---- processes: see also session_exec.c ---- */

int32_t glb_session_processes(glb_client *client, const char *session, int32_t has_ended,
                              char **ret_json)
{
    const char *rest = has_ended ? "/processes?all=1" : "/processes";
    return session_ask(client, "GET", session, rest, ret_json);
}

/* ---- files ---- */

enum { ADDRESS_MAX = 3 * 4096 + 128 };

static int path_of_file(char *path, const char *session, const char *file, int32_t is_folder,
                        error *err)
{
    const char *rest = is_folder ? "/files:tar?path=" : "/files/";
    if (session_path(path, ADDRESS_MAX, session, rest, err) < 0)
        return -1;
    auto_bytes encoded = { 0 };
    size_t used = strlen(path);
    percent_encode(&encoded, file ? file : "", file ? strlen(file) : 0, PERCENT_PATH);
    if (!file || encoded.failed || encoded.size >= ADDRESS_MAX - used)
        return fail(err, ERR_BAD_REQUEST, "the path of the file is too long");
    memcpy(path + used, bytes_text(&encoded), encoded.size + 1);
    return 0;
}

int32_t glb_session_read(glb_client *client, const char *session, const char *path,
                         int32_t is_folder, int fd)
{
    error err = { 0 };
    char address[ADDRESS_MAX];
    if (path_of_file(address, session, path, is_folder, &err) < 0 ||
        client_fetch(client, address, fd, &err) < 0)
        return report(&err);
    return GLB_OK;
}

int32_t glb_session_write(glb_client *client, const char *session, const char *path,
                          int32_t is_folder, int fd)
{
    error err = { 0 };
    char address[ADDRESS_MAX];
    struct http_request request = { .method = "PUT",
                                    .path = address,
                                    .accept = "application/json",
                                    .sends_file = true,
                                    .file = fd };
    if (path_of_file(address, session, path, is_folder, &err) < 0)
        return report(&err);
    struct stat status;
    if (!is_folder && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        (status.st_mode & 0777) != 0)
        (void) snprintf(address + strlen(address), sizeof address - strlen(address), "?mode=%o",
                        (unsigned) status.st_mode & 0777);
    return client_ask(client, &request, NULL, &err) < 0 ? report(&err) : GLB_OK;
}

struct listing {
    const char *path;
    uint32_t depth;
};

static void write_listing(struct sink *sink, const void *what)
{
    const struct listing *listing = what;
    struct body body = { .sink = sink };
    sink_text(sink, "{");
    body_text(&body, "path", listing->path);
    body_number(&body, "depth", listing->depth);
    sink_text(sink, "}");
}

int32_t glb_session_files(glb_client *client, const char *session, const char *path, uint32_t depth,
                          char **ret_json)
{
    error err = { 0 };
    char address[256];
    struct listing listing = { path ? path : "/workspace", depth };
    struct http_request request = json_post(address, write_listing, &listing);
    if (session_path(address, sizeof address, session, "/files:list", &err) < 0 ||
        check_text("the path", listing.path, strlen(listing.path), &err) < 0 ||
        client_ask(client, &request, ret_json, &err) < 0)
        return report(&err);
    return GLB_OK;
}
