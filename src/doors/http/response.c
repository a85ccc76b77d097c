/* response.c - answers: JSON, errors, streams. One table has the headers of all answers. */
#include "base/clock.h"
#include "base/table.h"
#include "doors/http/http_internal.h"
#include "engine/service/service_observe.h"
#include "model/errors.h"
#include "json/writer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum { STREAM_BLOCK = 32 * 1024, EVENTS_BLOCK = 1024, HEARTBEAT_MS = 10000, LINGER_MS = 30000 };

/* A browser that opens an answer must not render it or run scripts in it: programs may have made
 * it. */
static const struct {
    const char *name, *value;
} always[] = {
    { "Cache-Control", "no-store" },
    { "X-Content-Type-Options", "nosniff" },
    { "Content-Security-Policy", "sandbox; default-src 'none'" },
    { "Cross-Origin-Resource-Policy", "same-origin" },
    { "Referrer-Policy", "no-referrer" },
};

void exchange_add_header(struct exchange *exchange, const char *name, const char *value)
{
    bytes_add(&exchange->headers, name, strlen(name) + 1);
    bytes_add(&exchange->headers, value, strlen(value) + 1);
}

static bool was_added(const struct exchange *exchange, const char *name)
{
    for (size_t at = 0; at < exchange->headers.size;) {
        const char *its = exchange->headers.data + at;
        if (strcasecmp(its, name) == 0)
            return true;
        at += strlen(its) + 1;
        at += strlen(exchange->headers.data + at) + 1;
    }
    return false;
}

static void add_headers(struct exchange *exchange, struct MHD_Response *response)
{
    for (size_t at = 0; at < exchange->headers.size && !exchange->headers.failed;) {
        const char *name = exchange->headers.data + at;
        const char *value = name + strlen(name) + 1;
        (void) MHD_add_response_header(response, name, value);
        at = (size_t) (value - exchange->headers.data) + strlen(value) + 1;
    }
    for_each(header, always)
        if (!was_added(exchange, header->name))
            (void) MHD_add_response_header(response, header->name, header->value);
}

/* The answer is ready, and is sent when the connection is resumed. */
static void hold_refusal(struct exchange *exchange, unsigned status)
{
    struct connection *connection = connection_of(exchange->connection);
    if (!connection || connection->is_owner || !exchange->is_answered)
        return;
    if (status < MHD_HTTP_BAD_REQUEST)
        connection->refused = (struct refused){ 0 };
    else if (refusal_waits(&exchange->http->refusals, &connection->refused, now_ms()))
        exchange_wait_until(exchange, deadline_in(REFUSAL_HELD_MS));
}

void exchange_queue(struct exchange *exchange, unsigned status, struct MHD_Response *response,
                    const char *mime)
{
    if (!response)
        return;
    if (exchange->http->settings.answering)
        exchange->http->settings.answering(exchange, status);
    add_headers(exchange, response);
    if (mime)
        (void) MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, mime);
    (void) MHD_add_response_header(response, "X-Request-Id", exchange->id);
    if (status == MHD_HTTP_TOO_MANY_REQUESTS && !was_added(exchange, MHD_HTTP_HEADER_RETRY_AFTER))
        (void) MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    exchange->status = status;
    exchange->is_answered = MHD_queue_response(exchange->connection, status, response) == MHD_YES;
    MHD_destroy_response(response);
    hold_refusal(exchange, status);
}

void exchange_answer_as(struct exchange *exchange, unsigned status, const char *mime,
                        struct bytes *text)
{
    if (text->failed) {
        bytes_done(text);
        error err;
        (void) fail(&err, ERR_SYSTEM, "no memory for the answer");
        exchange_fail(exchange, &err);
        return;
    }
    struct MHD_Response *response =
        MHD_create_response_from_buffer(text->size, text->data, MHD_RESPMEM_MUST_FREE);
    if (response)
        *text = (struct bytes){ 0 };
    else
        bytes_done(text);
    exchange_queue(exchange, status, response, mime);
}

void exchange_end_json(struct exchange *exchange, struct bytes *json, const char *brackets)
{
    bytes_add_text(json, brackets);
    exchange_answer(exchange, MHD_HTTP_OK, json);
}

void exchange_answer(struct exchange *exchange, unsigned status, struct bytes *json)
{
    bytes_add_text(json, "\n");
    exchange_answer_as(exchange, status, "application/json", json);
}

void exchange_answer_or_fail(struct exchange *exchange, int result, struct bytes *json,
                             const error *cause)
{
    if (result == 0) {
        exchange_answer(exchange, MHD_HTTP_OK, json);
        return;
    }
    bytes_done(json);
    exchange_fail(exchange, cause);
}

void exchange_answer_nothing(struct exchange *exchange, unsigned status)
{
    exchange_queue(exchange, status,
                   MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT), NULL);
}

const struct error_row *exchange_write_error(const struct exchange *exchange, const error *cause,
                                             struct bytes *json)
{
    const struct error_row *row = error_row_of(cause->code);
    json_open(json, '{');
    json_open_field(json, "error", '{');
    json_string_field(json, "code", row->json_code);
    json_string_field(json, "message", cause->text);
    json_string_field(json, "fault", error_fault(cause->code));
    json_flag_field(json, "retryable", row->retryable || exchange->is_retryable);
    json_string_field(json, "request_id", exchange->id);
    json_close_all(json, "}}");
    bytes_add_text(json, "\n");
    if (row->http_status >= 500)
        service_log_warning(&exchange->caller, LOGGED_REQUEST_FAILED, NULL, NULL, cause->text);
    return row;
}

/* Writes a head as libmicrohttpd would, which accepts no answer while a body arrives. */
static void write_head(struct exchange *exchange, unsigned status, size_t size, struct bytes *out)
{
    bytes_print(out, "HTTP/1.1 %u %s\r\nConnection: close\r\nContent-Length: %zu\r\n", status,
                MHD_get_reason_phrase_for(status), size);
    for (size_t at = 0; at < exchange->headers.size && !exchange->headers.failed;) {
        const char *name = exchange->headers.data + at;
        const char *value = name + strlen(name) + 1;
        bytes_print(out, "%s: %s\r\n", name, value);
        at = (size_t) (value - exchange->headers.data) + strlen(value) + 1;
    }
    for_each(header, always)
        if (!was_added(exchange, header->name))
            bytes_print(out, "%s: %s\r\n", header->name, header->value);
    bytes_print(out, "Content-Type: application/json\r\nX-Request-Id: %s\r\n\r\n", exchange->id);
}

bool exchange_fail_early(struct exchange *exchange, const error *cause)
{
    const struct connection *connection = connection_of(exchange->connection);
    auto_bytes json = { 0 }, answer = { 0 };
    unsigned status = (unsigned) exchange_write_error(exchange, cause, &json)->http_status;
    if (exchange->http->settings.answering)
        exchange->http->settings.answering(exchange, status);
    write_head(exchange, status, json.size, &answer);
    bytes_add(&answer, json.data, json.size);
    if (json.failed || answer.failed || !connection || connection->fd < 0)
        return false;
    ssize_t sent = send(connection->fd, answer.data, answer.size, MSG_DONTWAIT | MSG_NOSIGNAL);
    exchange->status = status;
    exchange->lingers_until = deadline_in(LINGER_MS);
    return sent == (ssize_t) answer.size;
}

void exchange_fail(struct exchange *exchange, const error *cause)
{
    auto_bytes json = { 0 };
    const struct error_row *row = exchange_write_error(exchange, cause, &json);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(json.size, json.data, MHD_RESPMEM_MUST_COPY);
    exchange_queue(exchange, (unsigned) row->http_status, response, "application/json");
}

struct stream {
    struct exchange *exchange;
    exchange_reader *read;
    bool is_events;
    deadline heartbeat; /* of events: when to send a comment */
    deadline key_look;  /* when to check the key again */
};

/* Keeps proxies from closing an idle connection, and finds out if the peer has gone. */
static ssize_t say_heartbeat(struct stream *stream, char *bytes, size_t size)
{
    static const char comment[] = ": nothing new\n\n";
    if (!deadline_has_passed(stream->heartbeat) || size < sizeof comment)
        return STREAM_LATER;
    memcpy(bytes, comment, sizeof comment - 1);
    return sizeof comment - 1;
}

static ssize_t read_stream(void *context, uint64_t position, char *bytes, size_t size)
{
    (void) position;
    struct stream *stream = context;
    struct exchange *exchange = stream->exchange;
    if (exchange->is_gone || exchange->http->is_closing)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (deadline_has_passed(stream->key_look)) {
        if (!service_caller_is_good(exchange->service, &exchange->caller))
            return MHD_CONTENT_READER_END_WITH_ERROR;
        stream->key_look = deadline_in(HEARTBEAT_MS);
    }
    ssize_t got = stream->read(exchange, bytes, size);
    if (got == STREAM_END)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (got < 0)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (got == STREAM_LATER && stream->is_events)
        got = say_heartbeat(stream, bytes, size);
    if (got > 0 && stream->is_events)
        stream->heartbeat = deadline_in(HEARTBEAT_MS);
    bool is_sooner =
        exchange->look_at.at_ms != 0 &&
        (stream->heartbeat.at_ms == 0 || exchange->look_at.at_ms < stream->heartbeat.at_ms);
    if (got == STREAM_LATER && exchange->is_resting)
        exchange_give_back(exchange);
    if (got == STREAM_LATER)
        exchange_wait_until(exchange, is_sooner ? exchange->look_at : stream->heartbeat);
    return got;
}

static void stream_as(struct exchange *exchange, const struct stream *how, unsigned status,
                      const char *mime, uint64_t size)
{
    struct stream *stream = malloc(sizeof *stream);
    if (!stream)
        return;
    *stream = *how;
    exchange->is_streaming = true;
    /* The block is allocated while the stream is open, and only needed for HTTP/1.0, which has no
     * chunks: long streams, of which there may be many, have small ones. */
    size_t block = how->is_events ? EVENTS_BLOCK : STREAM_BLOCK;
    struct MHD_Response *response =
        MHD_create_response_from_callback(size, block, read_stream, stream, free);
    if (!response)
        free(stream);
    exchange_queue(exchange, status, response, mime);
}

void exchange_stream(struct exchange *exchange, exchange_reader *reader)
{
    struct stream stream = { .exchange = exchange,
                             .read = reader,
                             .is_events = true,
                             .heartbeat = deadline_in(HEARTBEAT_MS),
                             .key_look = deadline_in(HEARTBEAT_MS) };
    stream_as(exchange, &stream, MHD_HTTP_OK, "text/event-stream", MHD_SIZE_UNKNOWN);
}

void exchange_stream_as(struct exchange *exchange, unsigned status, const char *mime, uint64_t size,
                        exchange_reader *reader)
{
    struct stream stream = { .exchange = exchange,
                             .read = reader,
                             .key_look = deadline_in(HEARTBEAT_MS) };
    stream_as(exchange, &stream, status, mime, size);
}
