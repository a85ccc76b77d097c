/* bridge_post.c - one message as an HTTP request, and its answer: JSON, or events as they come. */
#include "cli/mcp/mcp_bridge.h"

#include "base/cleanup.h"
#include "client/connect.h"
#include "json/member.h"
#include "json/reader.h"
#include "json/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { BLOCK = 64 * 1024, INTERNAL = -32603 };

int bridge_dial(const struct bridge *bridge, int *ret_fd, error *err)
{
    auto_fd fd = -1;
    if (bridge->place) {
        if (dial(bridge->place, &fd, err) < 0)
            return -1;
    } else {
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 ||
            connect(fd, (const struct sockaddr *) &bridge->address, bridge->address_size) < 0)
            return fail_os(err, "connect to the private daemon");
    }
    *ret_fd = take_fd(&fd);
    return 0;
}

void bridge_tell(struct bridge *bridge, const char *json, size_t size)
{
    bytes_add(&bridge->out, json, size);
    bytes_add(&bridge->out, "\n", 1);
}

static void tell_failure(struct bridge *bridge, const struct post *post, const char *text)
{
    auto_bytes json = { 0 };
    if (!post->id)
        return;
    const char *id = json_object_to_json_string_ext(post->id, JSON_C_TO_STRING_PLAIN);
    bytes_add_text(&json, "{");
    json_string_field(&json, "jsonrpc", "2.0");
    json_key(&json, "id");
    json_raw(&json, id, strlen(id));
    json_open_field(&json, "error", '{');
    json_number_field(&json, "code", INTERNAL);
    json_string_field(&json, "message", text);
    json_close_all(&json, "}}");
    bridge_tell(bridge, json.data, json.size);
}

static void post_free(struct post *post)
{
    close_fd(&post->fd);
    bytes_done(&post->request);
    bytes_done(&post->in);
    bytes_done(&post->body);
    bytes_done(&post->answer.headers);
    (void) json_object_put(post->id);
    (void) json_object_put(post->exports);
    free(post);
}

void posts_clean(struct bridge *bridge)
{
    for (struct post **link = &bridge->posts; *link;) {
        struct post *post = *link;
        if (!post->is_over) {
            link = &post->next;
            continue;
        }
        *link = post->next;
        bridge->post_count--;
        post_free(post);
    }
}

void bridge_end_posts(struct bridge *bridge)
{
    for (struct post *post = bridge->posts; post; post = post->next)
        post->is_over = true;
    posts_clean(bridge);
}

/* --- requests ------------------------------------------------------------------------------ */

/* A stateless call is cancelled by closing its connection. In a session with a handshake the daemon
 * cancels it, because it gets the host's notification. */
static void cancel(struct bridge *bridge, json_object *message)
{
    json_object *id = json_member(json_member(message, "params"), "requestId");
    for (struct post *post = bridge->posts; id && post; post = post->next)
        if (post->id && !bridge->session[0] && json_object_equal(post->id, id))
            post->is_over = true;
}

static void write_head(const struct bridge *bridge, const struct post *post, json_object *message,
                       size_t size, struct bytes *out)
{
    json_object *meta = json_member(json_member(message, "params"), "_meta");
    json_object *version = json_member(meta, "io.modelcontextprotocol/protocolVersion");
    bytes_add_text(out, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                        "Accept: application/json, text/event-stream\r\n"
                        "Content-Type: application/json\r\n");
    if (bridge->key)
        bytes_print(out, "Authorization: Bearer %s\r\n", bridge->key);
    bytes_print(out, "Glovebox-Process: %s\r\n", bridge->id);
    if (bridge->session[0] && !version && !post->is_handshake)
        bytes_print(out, "Mcp-Session-Id: %s\r\n", bridge->session);
    bytes_print(out, "Content-Length: %zu\r\n\r\n", size);
}

static int open_post(struct bridge *bridge, struct post *post, error *err)
{
    if (bridge_dial(bridge, &post->fd, err) < 0)
        return -1;
    if (fcntl(post->fd, F_SETFL, O_NONBLOCK) < 0)
        return fail_os(err, "make a connection non-blocking");
    return post->request.failed ? fail(err, ERR_SYSTEM, "no memory for a message") : 0;
}

static void read_message(const struct bridge *bridge, struct post *post, json_object *message)
{
    json_object *method = json_member(message, "method");
    const char *name =
        json_object_is_type(method, json_type_string) ? json_object_get_string(method) : "";
    post->id = *name ? json_object_get(json_member(message, "id")) : NULL;
    post->is_handshake = strcmp(name, "initialize") == 0;
    if (host_files_exports(&bridge->files, message))
        post->exports = json_object_get(json_member(json_member(message, "params"), "arguments"));
}

void bridge_send(struct bridge *bridge, const char *line, size_t size)
{
    auto_json message = NULL;
    error err;
    struct post *post = calloc(1, sizeof *post);
    if (!post)
        return;
    post->fd = -1;
    if (json_read_exact(line, size, &message, &err) == 0) {
        json_object *method = json_member(message, "method");
        if (json_object_is_type(method, json_type_string) &&
            strcmp(json_object_get_string(method), "notifications/cancelled") == 0)
            cancel(bridge, message);
        read_message(bridge, post, message);
        if (post->id && host_files_import(&bridge->files, message))
            line = json_object_to_json_string_length(
                message, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &size);
    }
    write_head(bridge, post, message, size, &post->request);
    bytes_add(&post->request, line, size);
    if (open_post(bridge, post, &err) < 0) {
        tell_failure(bridge, post, err.text);
        post_free(post);
        return;
    }
    post->next = bridge->posts;
    bridge->posts = post;
    bridge->post_count++;
}

void post_write(struct post *post)
{
    ssize_t sent = send(post->fd, post->request.data + post->sent, post->request.size - post->sent,
                        MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0)
        post->sent += (size_t) sent;
    else if (errno != EAGAIN && errno != EINTR)
        post->sent = post->request.size; /* the daemon may have answered already */
    if (post->sent == post->request.size)
        bytes_done(&post->request), post->request = (struct bytes){ 0 }, post->sent = 0;
}

/* --- answers ------------------------------------------------------------------------------- */

/* If the result carries a file, the file is written to the folder, and the host gets the rest. */
static void tell_message(struct bridge *bridge, const struct post *post, const char *json,
                         size_t size)
{
    auto_json message = NULL;
    error err;
    if (post->exports && json_read(json, size, &message, &err) == 0 &&
        host_files_export(&bridge->files, post->exports, message))
        json = json_object_to_json_string_length(
            message, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &size);
    bridge_tell(bridge, json, size);
}

/* Reads a line of an event stream. The daemon writes each event as one line of data. */
static void take_line(struct bridge *bridge, const struct post *post, const char *line, size_t size)
{
    static const char field[] = "data:";
    size_t skip = sizeof field - 1;
    if (size < skip || strncmp(line, field, skip) != 0)
        return;
    skip += size > skip && line[skip] == ' ';
    tell_message(bridge, post, line + skip, size - skip);
}

static void take_events(struct bridge *bridge, struct post *post)
{
    size_t at = 0;
    for (;;) {
        const char *from = post->body.data + at;
        const char *end = post->body.size > at ? memchr(from, '\n', post->body.size - at) : NULL;
        if (!end)
            break;
        take_line(bridge, post, from, (size_t) (end - from));
        at += (size_t) (end - from) + 1;
    }
    bytes_drop(&post->body, at);
}

static void note_session(struct bridge *bridge, const struct post *post)
{
    const struct bytes *headers = &post->answer.headers;
    for (size_t at = 0; at < headers->size;) {
        const char *name = headers->data + at;
        const char *value = name + strlen(name) + 1;
        at = (size_t) (value - headers->data) + strlen(value) + 1;
        if (strcasecmp(name, "Mcp-Session-Id") == 0 && strlen(value) < sizeof bridge->session)
            memcpy(bridge->session, value, strlen(value) + 1);
    }
}

/* Called when the answer is complete. A failure that the daemon reports by HTTP alone becomes a
 * failure of the protocol. */
static void conclude(struct bridge *bridge, struct post *post)
{
    post->is_over = true;
    if (post->is_handshake)
        note_session(bridge, post);
    if (post->is_events || post->answer.status == 202)
        return;
    static const char begin[] = "{\"jsonrpc\"";
    auto_json answer = NULL;
    error err;
    size_t size = post->body.size;
    while (size > 0 && post->body.data[size - 1] == '\n')
        size--;
    if (strncmp(bytes_text(&post->body), begin, sizeof begin - 1) == 0) {
        tell_message(bridge, post, post->body.data, size);
        return;
    }
    json_object *text = json_read(post->body.data, size, &answer, &err) < 0
                            ? NULL
                            : json_member(json_member(answer, "error"), "message");
    tell_failure(bridge, post, text ? json_object_get_string(text) : "the daemon gives no answer");
}

static int take_head(struct post *post, error *err)
{
    size_t used;
    int result = port_answer_read(&post->answer, post->in.data, post->in.size, &used, err);
    if (result != ANSWER_WHOLE)
        return result;
    bytes_drop(&post->in, used);
    post->has_head = true;
    post->is_events = strncasecmp(post->answer.mime, "text/event-stream", 17) == 0;
    return 0;
}

static bool body_has_ended(const struct post *post)
{
    return post->has_ended || (post->answer.has_size && post->answer.left == 0);
}

/* Returns how many of the received bytes are complete chunks. */
static size_t take_chunks(struct post *post, bool *ret_is_bad)
{
    size_t at = 0;
    *ret_is_bad = false;
    while (at < post->in.size && !post->has_ended && !*ret_is_bad) {
        size_t used;
        const char *bytes = post->in.data + at;
        enum http_chunk_verdict verdict =
            http_chunks_take(&post->answer.chunks, bytes, post->in.size - at, &used);
        if (verdict == CHUNK_DATA)
            bytes_add(&post->body, bytes, used);
        *ret_is_bad = verdict == CHUNK_BAD;
        post->has_ended = verdict == CHUNK_END;
        at += used;
    }
    return at;
}

static size_t take_plain(struct post *post)
{
    size_t here = post->in.size;
    if (post->answer.has_size && here > post->answer.left)
        here = (size_t) post->answer.left;
    bytes_add(&post->body, post->in.data, here);
    post->answer.left -= post->answer.has_size ? here : 0;
    return here;
}

static int take_body(struct bridge *bridge, struct post *post, error *err)
{
    bool is_bad = false;
    size_t used = post->answer.is_chunked ? take_chunks(post, &is_bad) : take_plain(post);
    bytes_drop(&post->in, used);
    if (is_bad)
        return fail(err, ERR_PROTOCOL, "the daemon has sent a chunk that is none");
    if (post->is_events)
        take_events(bridge, post);
    if (body_has_ended(post))
        conclude(bridge, post);
    return 0;
}

void post_read(struct bridge *bridge, struct post *post)
{
    error err;
    char *room = bytes_reserve(&post->in, BLOCK);
    ssize_t got = room ? recv(post->fd, room, BLOCK, MSG_DONTWAIT) : 0;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        bool has_body = post->has_head && !post->answer.is_chunked && !post->answer.has_size;
        if (has_body)
            conclude(bridge, post);
        else if (!post->is_over)
            tell_failure(bridge, post, "the daemon has gone");
        post->is_over = true;
        return;
    }
    post->in.size += (size_t) got;
    int result = post->has_head ? 0 : take_head(post, &err);
    if (result == 0 && post->has_head && (post->in.size > 0 || body_has_ended(post)))
        result = take_body(bridge, post, &err);
    if (result < 0) {
        tell_failure(bridge, post, err.text);
        post->is_over = true;
    }
}
