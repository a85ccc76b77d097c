/* client.c - reads answers of HTTP/1.1, strictly where a mistake would misplace the end of a
 * body. */
#include "http1/client.h"

#include "base/cleanup.h"
#include "base/sink.h"
#include "base/text.h"
#include "http1/field.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENT_MAX = 1 << 30 }; /* bytes of one event: an `end` carries both outputs, escaped */

void http_init(struct http *http, int fd, int interrupt)
{
    http->fd = fd;
    http->interrupt = interrupt;
    http->watch = NULL;
    http->start = http->end = 0;
    http->keep = true;
    http->body_ended = true;
}

void http_done(struct http *http)
{
    close_fd(&http->fd);
    http->fd = -1;
}

/* In chunks, so that a pipe may be sent as well as a file. */
static int send_file(struct sink *sink, int file, error *err)
{
    char block[6000];
    for (;;) {
        ssize_t got = read(file, block, sizeof block);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_os(err, "read what is to be sent");
        char size[24];
        (void) snprintf(size, sizeof size, "%zx\r\n", (size_t) got);
        sink_text(sink, size);
        sink_bytes(sink, block, (size_t) got);
        sink_text(sink, "\r\n");
        if (got == 0 || sink->failed != 0)
            return 0;
    }
}

int http_send(struct http *http, const struct http_request *request, error *err)
{
    struct sink sink;
    uint64_t length = 0;
    if (request->write_body) {
        sink_init(&sink, -1);
        request->write_body(&sink, request->what);
        length = sink.total;
    }
    const char *key = request->key ? request->key : http->key;
    http->body_ended = false; /* if sending fails, the connection must not be used again */
    sink_init(&sink, http->fd);
    sink_text(&sink, request->method);
    sink_text(&sink, " ");
    sink_text(&sink, request->path);
    sink_text(&sink, " HTTP/1.1\r\nHost: localhost\r\nAccept: ");
    sink_text(&sink, request->accept);
    sink_text(&sink, "\r\nUser-Agent: glovebox/" GLOVEBOX_VERSION "\r\n");
    if (key) {
        sink_text(&sink, "Authorization: Bearer ");
        sink_text(&sink, key);
        sink_text(&sink, "\r\n");
    }
    if (request->write_body) {
        char head[80];
        (void) snprintf(head, sizeof head,
                        "Content-Type: application/json\r\nContent-Length: %llu\r\n",
                        (unsigned long long) length);
        sink_text(&sink, head);
    }
    if (request->sends_file)
        sink_text(&sink,
                  "Content-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n");
    sink_text(&sink, "\r\n");
    if (request->write_body)
        request->write_body(&sink, request->what);
    if (request->sends_file && send_file(&sink, request->file, err) < 0)
        return -1;
    return sink_flush(&sink, err);
}

enum { LOOK_MS = 60000, LOOK_WATCH_MS = 500 };

/* Returns 0 when there is something to read. */
static int wait_to_read(struct http *http, error *err)
{
    struct http_watch *watch = http->watch;
    for (;;) {
        struct pollfd watched[3] = { { .fd = http->fd, .events = POLLIN },
                                     { .fd = http->interrupt, .events = POLLIN },
                                     { .fd = watch ? watch->fd : -1, .events = POLLIN } };
        int64_t left = deadline_left_ms(http->until), max = watch ? LOOK_WATCH_MS : LOOK_MS;
        int ready = poll(watched, 3, left > max ? (int) max : (int) left);
        if (ready < 0 && errno != EINTR)
            return fail_os(err, "wait for gloveboxd");
        if (ready > 0 && watched[1].revents)
            return HTTP_INTERRUPTED;
        if (watch && watch->turn(watch->context, err) < 0)
            return -1;
        if (ready > 0 && watched[0].revents)
            return 0;
        if (watch && ready > 0 && watched[2].revents && watch->ready(watch->context, err) < 0)
            return -1;
        if (deadline_has_passed(http->until))
            return fail(err, ERR_TIMEOUT, "gloveboxd does not answer; see its log");
    }
}

/* Puts more bytes into the buffer, which has room. */
static int fill(struct http *http, error *err)
{
    if (http->start == http->end)
        http->start = http->end = 0;
    if (http->end == sizeof http->buffer) {
        memmove(http->buffer, http->buffer + http->start, http->end - http->start);
        http->end -= http->start;
        http->start = 0;
    }
    int outcome = wait_to_read(http, err);
    if (outcome != 0)
        return outcome;
    ssize_t got = recv(http->fd, http->buffer + http->end, sizeof http->buffer - http->end, 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (got < 0 && errno != ECONNRESET)
        return fail_os(err, "read from gloveboxd");
    if (got <= 0)
        return HTTP_CLOSED;
    http->end += (size_t) got;
    return 0;
}

/* Takes one line, without its CR LF, out of the buffer. */
static int take_line(struct http *http, char **ret_line, error *err)
{
    for (;;) {
        char *start = http->buffer + http->start;
        char *newline = memchr(start, '\n', http->end - http->start);
        if (newline) {
            http->start = (size_t) (newline - http->buffer) + 1;
            *newline = '\0';
            if (newline > start && newline[-1] == '\r')
                newline[-1] = '\0';
            *ret_line = start;
            return 0;
        }
        if (http->end - http->start == sizeof http->buffer)
            return fail(err, ERR_PROTOCOL, "gloveboxd sent a header line that is too long");
        int outcome = fill(http, err);
        if (outcome != 0)
            return outcome;
    }
}

static int parse_header(struct http *http, const char *line, bool *has_length, error *err)
{
    struct http_field field;
    if (http_field_read(line, strlen(line), &field) < 0)
        return fail(err, ERR_PROTOCOL, "gloveboxd sent a malformed header");
    if (http_text_is(field.name, "Content-Length")) {
        if (http_length_read(field.value, &http->left) < 0)
            return fail(err, ERR_PROTOCOL, "gloveboxd sent a length that is no number");
        *has_length = true;
    } else if (http_text_is(field.name, "Transfer-Encoding")) {
        if (!http_text_is(field.value, "chunked"))
            return fail(err, ERR_PROTOCOL, "gloveboxd sent a body in an unknown coding");
        http->chunked = true;
    } else if (http_text_is(field.name, "Content-Type")) {
        http->events = strncasecmp(field.value.at, "text/event-stream", 17) == 0;
    } else if (http_text_is(field.name, "Connection") && http_text_is(field.value, "close")) {
        http->keep = false;
    }
    return 0;
}

static int receive_head(struct http *http, error *err)
{
    char *line = http->buffer;
    int outcome = take_line(http, &line, err);
    if (outcome != 0)
        return outcome;
    http->status = http_status_read(line, strlen(line));
    if (http->status < 0)
        return fail(err, ERR_PROTOCOL,
                    "another program answers there, and not gloveboxd; give the daemon's socket or "
                    "port: --daemon, GLOVEBOX_SOCKET");
    http->events = http->chunked = http->until_close = false;
    http->chunks = (struct http_chunks){ 0 };
    http->keep = true;
    http->left = 0;
    bool has_length = false;
    for (;;) {
        outcome = take_line(http, &line, err);
        if (outcome != 0)
            return outcome;
        if (!*line)
            break;
        if (parse_header(http, line, &has_length, err) < 0)
            return -1;
    }
    if (http->chunked && has_length)
        return fail(err, ERR_PROTOCOL, "gloveboxd sent a body with two lengths");
    http->until_close = !http->chunked && !has_length && http->status != 204;
    http->body_ended = !http->chunked && !http->until_close && http->left == 0;
    if (http->until_close)
        http->keep = false;
    return 0;
}

int http_receive(struct http *http, error *err)
{
    for (;;) {
        int outcome = receive_head(http, err);
        if (outcome != 0 || http->status >= 200)
            return outcome;
    }
}

/* As fill(), but not interrupted after the last chunk: the rest of the body is short. */
static int fill_chunks(struct http *http, error *err)
{
    int interrupt = http->interrupt;
    if (http_chunks_are_read(&http->chunks))
        http->interrupt = -1;
    int outcome = fill(http, err);
    http->interrupt = interrupt;
    return outcome;
}

static int read_chunks(struct http *http, void *data, size_t size, size_t *ret_size, error *err)
{
    for (;;) {
        while (http->start == http->end) {
            int outcome = fill_chunks(http, err);
            if (outcome != 0)
                return outcome;
        }
        const char *at = http->buffer + http->start;
        size_t here = http->end - http->start, used;
        enum http_chunk_verdict verdict =
            http_chunks_take(&http->chunks, at, here < size ? here : size, &used);
        http->start += used;
        if (verdict == CHUNK_BAD)
            return fail(err, ERR_PROTOCOL, "gloveboxd sent a malformed chunk");
        http->body_ended = verdict == CHUNK_END;
        if (verdict == CHUNK_DATA) {
            memcpy(data, at, used);
            *ret_size = used;
        }
        if (verdict != CHUNK_SKIP)
            return 0;
    }
}

int http_read(struct http *http, void *data, size_t size, size_t *ret_size, error *err)
{
    *ret_size = 0;
    if (http->body_ended)
        return 0;
    if (http->chunked)
        return read_chunks(http, data, size, ret_size, err);
    while (http->start == http->end) {
        int outcome = fill(http, err);
        if (outcome == HTTP_CLOSED && http->until_close) {
            http->body_ended = true;
            return 0;
        }
        if (outcome != 0)
            return outcome;
    }
    size_t here = http->end - http->start;
    if (here > size)
        here = size;
    if (!http->until_close && here > http->left)
        here = (size_t) http->left;
    memcpy(data, http->buffer + http->start, here);
    http->start += here;
    *ret_size = here;
    if (!http->until_close) {
        http->left -= here;
        http->body_ended = http->left == 0;
    }
    return 0;
}

/* Makes room for `more` bytes and one behind them. */
static int grow(struct growing *bytes, size_t more, size_t max, error *err)
{
    if (more >= max - bytes->size)
        return fail(err, ERR_TOO_LARGE, "gloveboxd's answer is too long");
    if (bytes->data && bytes->size + more < bytes->room)
        return 0;
    size_t wanted = bytes->room > 0 ? bytes->room : 4096;
    while (wanted <= bytes->size + more)
        wanted *= 2;
    char *grown = realloc(bytes->data, wanted);
    if (!grown)
        return fail(err, ERR_INTERNAL, "out of memory for gloveboxd's answer");
    bytes->data = grown;
    bytes->room = wanted;
    return 0;
}

static int add(struct growing *bytes, const char *data, size_t size, error *err)
{
    if (grow(bytes, size, EVENT_MAX, err) < 0)
        return -1;
    memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
    bytes->data[bytes->size] = '\0';
    return 0;
}

static int read_rest(struct http *http, size_t max, struct growing *body, error *err)
{
    for (;;) {
        if (grow(body, 4096, max, err) < 0)
            return -1;
        size_t got = 0;
        assert(body->data);
        int outcome =
            http_read(http, body->data + body->size, body->room - body->size - 1, &got, err);
        if (outcome != 0 || got == 0)
            return outcome;
        body->size += got;
    }
}

int http_read_all(struct http *http, size_t max, char **ret_body, size_t *ret_size, error *err)
{
    struct growing body = { 0 };
    int outcome = read_rest(http, max, &body, err);
    if (outcome != 0) {
        free(body.data);
        return outcome;
    }
    body.data[body.size] = '\0';
    *ret_body = body.data;
    *ret_size = body.size;
    return 0;
}

/* Takes one line of a stream of events; an empty line ends the event and calls back. */
static int take_event_line(struct event_reader *reader, error *err)
{
    struct growing *line = &reader->line, *data = &reader->data;
    size_t size = line->size;
    line->size = 0;
    if (size > 0 && line->data[size - 1] == '\r')
        size--;
    if (size == 0) {
        if (data->size == 0)
            return 0;
        int outcome = reader->came(reader->context, reader->name, data->data, err);
        data->size = 0;
        reader->name[0] = '\0';
        return outcome;
    }
    line->data[size] = '\0';
    if (text_begins(line->data, "event:")) {
        const char *name = line->data + strlen("event:");
        (void) snprintf(reader->name, sizeof reader->name, "%s", name + (*name == ' '));
        return 0;
    }
    if (!text_begins(line->data, "data:"))
        return 0;
    const char *text = line->data + strlen("data:");
    text += *text == ' ';
    if (data->size > 0 && add(data, "\n", 1, err) < 0)
        return -1;
    return add(data, text, size - (size_t) (text - line->data), err);
}

int event_reader_feed(struct event_reader *reader, const char *bytes, size_t size, error *err)
{
    while (size > 0) {
        const char *newline = memchr(bytes, '\n', size);
        size_t here = newline ? (size_t) (newline - bytes) : size;
        if (add(&reader->line, bytes, here, err) < 0)
            return -1;
        if (!newline)
            return 0;
        bytes = newline + 1;
        size -= here + 1;
        int outcome = take_event_line(reader, err);
        if (outcome != 0)
            return outcome;
    }
    return 0;
}

void event_reader_done(struct event_reader *reader)
{
    free(reader->line.data);
    free(reader->data.data);
    reader->line = reader->data = (struct growing){ 0 };
}
