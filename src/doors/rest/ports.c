/* ports.c - /v1/sessions/{id}/ports/{port}/…: connects HTTP, WebSocket and, with `Upgrade: raw`,
 * any bytes to a server inside a session. The sandbox needs no network for this: its own init
 * connects.
 *
 * The server gets a request for localhost, without the keys and cookies for glovebox. Its answer is
 * served with a Content-Security-Policy, so that a page cannot act in glovebox's own origin. */
#include "base/table.h"
#include "doors/http/port_relay.h"
#include "doors/http/url_signature.h"
#include "doors/rest/rest.h"
#include "engine/service/service_sessions.h"
#include "http1/percent_encode.h"
#include "http1/response_reader.h"

#include <inttypes.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char token_header[] = "X-Glovebox-Port-Token";

struct call {
    struct port_relay relay; /* after it has left HTTP */
    struct port_link *link;
    struct exchange *exchange;
    struct port_answer answer;
    bool is_raw, is_chunked, body_ended;
};

/* --- access ----------------------------------------------------------------------------------- */

/* A token for all ports of a session: the id of the key that requested it, and its signature. */
static void write_token(const char *key, const char *session, struct bytes *out)
{
    const struct pass pass = { .key = key, .session = session, .transfer = "ports", .mode = "" };
    char signature[PASS_SIZE];
    pass_sign(&pass, signature);
    bytes_print(out, "%s.%s", key, signature);
}

/* A valid token stands for the key that requested it. */
static int use_token(struct exchange *exchange, const char *token, error *err)
{
    const char *dot = strchr(token, '.');
    auto_bytes key = { 0 };
    bytes_add(&key, token, dot ? (size_t) (dot - token) : 0);
    const struct pass pass = {
        .key = bytes_text(&key), .session = exchange->parameters[0], .transfer = "ports", .mode = ""
    };
    if (!pass_fits(&pass, dot ? dot + 1 : NULL))
        return fail(err, ERR_UNAUTHORIZED, "%s is not valid for this session", token_header);
    return pass_use(exchange, &pass, err);
}

static int enter_by_key(const struct exchange *exchange, struct session **ret_session, error *err)
{
    if (!exchange->caller.account)
        return fail(err, ERR_UNAUTHORIZED, "a key, or %s, is needed for the ports of a session",
                    token_header);
    return service_check_right(&exchange->caller, RIGHT_SESSIONS, err) < 0
               ? -1
               : service_session_enter(exchange->service, &exchange->caller,
                                       exchange->parameters[0], ret_session, err);
}

/* Finds the session by the caller's own key, or by the token for its ports. */
static struct session *find_session(struct exchange *exchange, error *err)
{
    struct session *session = NULL;
    const char *token = exchange_header(exchange, token_header);
    error by_key;
    if (enter_by_key(exchange, &session, &by_key) == 0)
        return session;
    if (!token)
        *err = by_key;
    else if (use_token(exchange, token, err) == 0 && enter_by_key(exchange, &session, err) == 0)
        return session;
    return NULL;
}

static void get_token(struct exchange *exchange)
{
    struct session *session = exchange_session(exchange);
    auto_bytes token = { 0 };
    if (!session)
        return;
    service_session_count_signature(session);
    write_token(service_key_id(&exchange->caller), exchange->parameters[0], &token);
    struct bytes json = { 0 };
    bytes_print(&json, "{\"token\":\"%s\",\"header\":\"%s\"}", bytes_text(&token), token_header);
    exchange_answer(exchange, MHD_HTTP_OK, &json);
}

/* --- the request ------------------------------------------------------------------------------ */

static const char of_paths[] = PERCENT_PATH ":@!$&'()*+,;=";

static void add_query(void *context, const char *name, const char *value)
{
    struct bytes *out = context;
    bytes_add(out, memchr(out->data, '?', out->size) ? "&" : "?", 1);
    percent_encode(out, name, strlen(name), PERCENT_UNRESERVED);
    if (!value)
        return;
    bytes_add(out, "=", 1);
    percent_encode(out, value, strlen(value), PERCENT_UNRESERVED);
}

static void add_header(void *context, const char *name, const char *value)
{
    static const char *const kept_back[] = { "Host",   "Authorization", "X-API-Key",      "Cookie",
                                             "Origin", "Expect",        "Accept-Encoding" };
    struct bytes *out = context;
    bool is_type = strcasecmp(name, "Content-Type") == 0;
    if (!value || (port_header_is_ours(name) && !is_type) || strcasecmp(name, token_header) == 0)
        return;
    for_each(each, kept_back)
        if (strcasecmp(*each, name) == 0)
            return;
    bytes_print(out, "%s: %s\r\n", name, value);
}

static void write_request(struct call *call, unsigned port, struct bytes *out)
{
    const struct exchange *exchange = call->exchange;
    const char *upgrade = exchange_header(exchange, MHD_HTTP_HEADER_UPGRADE);
    const char *length = exchange_header(exchange, MHD_HTTP_HEADER_CONTENT_LENGTH);
    const char *coding = exchange_header(exchange, MHD_HTTP_HEADER_TRANSFER_ENCODING);
    bytes_print(out, "%s /", exchange->method);
    percent_encode(out, exchange->parameters[2], strlen(exchange->parameters[2]), of_paths);
    exchange_each_query(exchange, add_query, out);
    bytes_print(out, " HTTP/1.1\r\nHost: localhost:%u\r\n", port);
    exchange_each_header(exchange, add_header, out);
    if (upgrade)
        bytes_print(out, "Connection: Upgrade\r\nUpgrade: %s\r\n", upgrade);
    else
        bytes_add_text(out, "Connection: close\r\n");
    if (coding) {
        call->is_chunked = true;
        bytes_add_text(out, "Transfer-Encoding: chunked\r\n");
    } else if (length) {
        bytes_print(out, "Content-Length: %" PRIu64 "\r\n", (uint64_t) strtoull(length, NULL, 10));
    }
    bytes_add_text(out, "\r\n");
}

static void on_woken(void *context)
{
    struct call *call = context;
    if (!port_relay_woken(&call->relay))
        exchange_wake(call->exchange);
}

static void leave(struct exchange *exchange)
{
    struct call *call = exchange->user;
    port_link_free(call->link);
    bytes_done(&call->answer.headers);
    free(call);
}

static int begin(struct exchange *exchange, error *err)
{
    char *end;
    struct session *session = find_session(exchange, err);
    unsigned long port = strtoul(exchange->parameters[1], &end, 10);
    const char *upgrade = exchange_header(exchange, MHD_HTTP_HEADER_UPGRADE);
    if (!session)
        return -1;
    if (*exchange->parameters[1] < '1' || *exchange->parameters[1] > '9' || *end || port > 65535)
        return fail(err, ERR_BAD_REQUEST, "a port must be a number from 1 to 65535");
    struct call *call = calloc(1, sizeof *call);
    if (!call)
        return fail(err, ERR_SYSTEM, "no memory for a connection");
    call->exchange = exchange;
    call->is_raw = upgrade && strcasecmp(upgrade, "raw") == 0;
    exchange->user = call;
    exchange->closed = leave;
    const struct waker waker = { .woken = on_woken, .context = call };
    if (service_port_connect(session, (uint16_t) port, &waker, &call->link, err) < 0)
        return -1;
    auto_bytes head = { 0 };
    if (!call->is_raw)
        write_request(call, (unsigned) port, &head);
    if (head.failed)
        return fail(err, ERR_SYSTEM, "no memory for a request");
    port_link_give(call->link, head.data, head.size);
    call->relay.exchange = exchange;
    call->relay.link = call->link;
    return 0;
}

static ssize_t take_body(struct exchange *exchange, const char *data, size_t size, error *err)
{
    struct call *call = exchange->user;
    char line[32];
    (void) err;
    if (!port_link_has_room(call->link))
        return 0;
    if (call->is_chunked) {
        int length = snprintf(line, sizeof line, "%zx\r\n", size);
        port_link_give(call->link, line, (size_t) length);
    }
    port_link_give(call->link, data, size);
    if (call->is_chunked)
        port_link_give(call->link, "\r\n", 2);
    return (ssize_t) size;
}

/* --- the answer ------------------------------------------------------------------------------- */

static ssize_t read_answer(struct exchange *exchange, char *bytes, size_t size)
{
    struct call *call = exchange->user;
    struct port_answer *answer = &call->answer;
    for (;;) {
        if (answer->has_size && answer->left == 0)
            return STREAM_END;
        size_t waiting;
        const char *in = port_link_waiting(call->link, &waiting);
        size_t used = waiting < size ? waiting : size;
        if (waiting == 0)
            break;
        enum http_chunk_verdict verdict = CHUNK_DATA;
        if (answer->is_chunked)
            verdict = http_chunks_take(&answer->chunks, in, used, &used);
        else if (answer->has_size && answer->left < used)
            used = (size_t) answer->left;
        if (verdict == CHUNK_DATA)
            memcpy(bytes, in, used);
        port_link_take(call->link, used);
        answer->left -= answer->has_size ? used : 0;
        if (verdict != CHUNK_SKIP)
            return verdict == CHUNK_DATA  ? (ssize_t) used
                   : verdict == CHUNK_END ? STREAM_END
                                          : STREAM_BROKEN;
    }
    if (!port_link_has_ended(call->link))
        return STREAM_LATER;
    return answer->has_size || answer->is_chunked ? STREAM_BROKEN : STREAM_END;
}

static void pass_on(struct exchange *exchange)
{
    struct call *call = exchange->user;
    struct port_answer *answer = &call->answer;
    for (size_t at = 0; at < answer->headers.size && !answer->headers.failed;) {
        const char *name = answer->headers.data + at;
        const char *value = name + strlen(name) + 1;
        exchange_add_header(exchange, name, value);
        at = (size_t) (value - answer->headers.data) + strlen(value) + 1;
    }
    if (answer->status == MHD_HTTP_SWITCHING_PROTOCOLS) {
        port_relay_begin(&call->relay, answer->upgrade);
        return;
    }
    exchange_stream_as(exchange, answer->status,
                       answer->mime[0] ? answer->mime : "application/octet-stream",
                       answer->has_size ? answer->left : STREAM_OF_ANY_SIZE, read_answer);
}

/* True if the final head has come; interim answers (100 Continue) are skipped. */
static int read_head(struct call *call, error *err)
{
    for (;;) {
        size_t used, size;
        const char *in = port_link_waiting(call->link, &size);
        int read = port_answer_read(&call->answer, in, size, &used, err);
        if (read != ANSWER_WHOLE)
            return read;
        port_link_take(call->link, used);
        if (call->answer.status >= 200 || call->answer.status == MHD_HTTP_SWITCHING_PROTOCOLS)
            return ANSWER_WHOLE;
    }
}

static void serve(struct exchange *exchange)
{
    struct call *call = exchange->user;
    error err;
    if (!call->body_ended && call->is_chunked)
        port_link_give(call->link, "0\r\n\r\n", 5);
    call->body_ended = true;
    if (port_link_check(call->link, &err) < 0) {
        exchange_fail(exchange, &err);
        return;
    }
    if (call->is_raw && port_link_is_open(call->link)) {
        port_relay_begin(&call->relay, "raw");
        return;
    }
    int read = call->is_raw ? ANSWER_CUT : read_head(call, &err);
    if (read == ANSWER_CUT && port_link_has_ended(call->link))
        read = fail(&err, ERR_UNREACHED, "the server in the session hung up without an answer");
    const char *wanted = exchange_header(exchange, MHD_HTTP_HEADER_UPGRADE);
    if (read == ANSWER_WHOLE && call->answer.status == MHD_HTTP_SWITCHING_PROTOCOLS && !wanted)
        read = fail(&err, ERR_UNREACHED,
                    "the server in the session switched protocols without a request");
    if (read < 0)
        exchange_fail(exchange, &err);
    else if (read == ANSWER_CUT)
        exchange_wait(exchange);
    else
        pass_on(exchange);
}

/* clang-format off */
static const struct route rows[] = {
    { "GET", "/v1/sessions/{id}/ports:token",         BODY_NONE,   get_token, "The token that opens the ports of a session without a key", .gives = "PortToken", .awaits = AWAITS_STANDING, .operation = "getPortToken" },
    { "ANY", "/v1/sessions/{id}/ports/{port}/{path}", BODY_STREAM, serve, "A server that listens inside the session: HTTP, WebSocket, or any bytes with Upgrade: raw",
      .right = RIGHT_NONE, .awaits = AWAITS_STANDING, .begin = begin, .take = take_body, .mime = "*/*", .operation = "Port" },
};
/* clang-format on */
const struct route_table port_routes = { "ports", rows, COUNT_OF(rows), RIGHT_SESSIONS,
                                         .text = "Servers that listen inside a session" };
