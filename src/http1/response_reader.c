/* response_reader.c - what a server inside a session answers. It may be hostile: a head that is not
 * one, two lengths, or a header that belongs to the connection or to glovebox does not come
 * through. */
#include "http1/response_reader.h"

#include "base/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool port_header_is_ours(const char *name)
{
    static const char *const names[] = {
        /* of one connection */
        "Connection",
        "Keep-Alive",
        "Proxy-Authenticate",
        "Proxy-Authorization",
        "Proxy-Connection",
        "TE",
        "Trailer",
        "Transfer-Encoding",
        "Upgrade",
        "Content-Length",
        /* of the place that glovebox serves from, which is not the server's */
        "Content-Security-Policy",
        "X-Content-Type-Options",
        "Strict-Transport-Security",
        "Clear-Site-Data",
        "Service-Worker-Allowed",
        "Set-Cookie",
        "X-Request-Id",
        "Alt-Svc",
        "Access-Control-Allow-Origin",
        "Access-Control-Allow-Credentials",
        "Content-Type",
    };
    for_each(each, names)
        if (strcasecmp(*each, name) == 0)
            return true;
    return false;
}

static int refuse(error *err, const char *why)
{
    return fail(err, ERR_UNREACHED, "the server in the session answers %s", why);
}

/* A token, and a value without control characters. */
static bool is_clean(const char *name, size_t name_size, const char *value, size_t value_size)
{
    static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (size_t i = 0; i < name_size; i++)
        if (name[i] == '\0' || !strchr(token, name[i]))
            return false;
    for (size_t i = 0; i < value_size; i++)
        if ((unsigned char) value[i] < ' ' && value[i] != '\t')
            return false;
    return name_size > 0;
}

static int read_length(struct port_answer *answer, const char *value, error *err)
{
    char *end;
    unsigned long long size = strtoull(value, &end, 10);
    if (*value < '0' || *value > '9' || *end || size > UINT64_MAX / 4 ||
        (answer->has_size && answer->left != size))
        return refuse(err, "with a length that is none");
    answer->has_size = true;
    answer->left = size;
    return 0;
}

static int keep_header(struct port_answer *answer, const char *name, const char *value, error *err)
{
    if (strcasecmp(name, "Content-Length") == 0)
        return read_length(answer, value, err);
    if (strcasecmp(name, "Transfer-Encoding") == 0) {
        if (strcasecmp(value, "chunked") != 0)
            return refuse(err, "in a coding that is not understood");
        answer->is_chunked = true;
    } else if (strcasecmp(name, "Content-Type") == 0) {
        (void) snprintf(answer->mime, sizeof answer->mime, "%s", value);
    } else if (strcasecmp(name, "Upgrade") == 0) {
        (void) snprintf(answer->upgrade, sizeof answer->upgrade, "%s", value);
    }
    if (port_header_is_ours(name))
        return 0;
    bytes_add(&answer->headers, name, strlen(name) + 1);
    bytes_add(&answer->headers, value, strlen(value) + 1);
    return 0;
}

static int read_header(struct port_answer *answer, const char *line, size_t size, error *err)
{
    const char *colon = memchr(line, ':', size);
    size_t name = colon ? (size_t) (colon - line) : 0;
    const char *value = colon ? colon + 1 : line;
    size_t value_size = colon ? size - name - 1 : 0;
    while (value_size > 0 && (*value == ' ' || *value == '\t')) {
        value++;
        value_size--;
    }
    while (value_size > 0 && (value[value_size - 1] == ' ' || value[value_size - 1] == '\t'))
        value_size--;
    if (!colon || name > 256 || value_size > 16384 || !is_clean(line, name, value, value_size))
        return refuse(err, "with a header that is none");
    auto_bytes text = { 0 };
    bytes_add(&text, line, name);
    bytes_add(&text, "", 1);
    bytes_add(&text, value, value_size);
    bytes_add(&text, "", 1);
    if (text.failed)
        return fail(err, ERR_SYSTEM, "no memory for a header");
    return keep_header(answer, text.data, text.data + name + 1, err);
}

static int read_status(struct port_answer *answer, const char *line, size_t size, error *err)
{
    bool is_http =
        size >= 12 && (memcmp(line, "HTTP/1.1 ", 9) == 0 || memcmp(line, "HTTP/1.0 ", 9) == 0);
    for (size_t i = 9; is_http && i < 12; i++)
        is_http = line[i] >= '0' && line[i] <= '9';
    if (!is_http)
        return refuse(err, "what is not HTTP/1.1");
    answer->status = (unsigned) ((line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0'));
    return answer->status >= 100 && answer->status <= 599 ? 0 : refuse(err, "with no status");
}

static int read_lines(struct port_answer *answer, const char *bytes, size_t size, error *err)
{
    const char *at = bytes;
    const char *end = bytes + size;
    for (bool is_first = true; at < end; is_first = false) {
        const char *line_end = memchr(at, '\n', (size_t) (end - at));
        size_t length = (size_t) (line_end - at);
        if (length > 0 && at[length - 1] == '\r')
            length--;
        if (length == 0)
            break;
        if ((is_first ? read_status(answer, at, length, err)
                      : read_header(answer, at, length, err)) < 0)
            return -1;
        at = line_end + 1;
    }
    if (answer->is_chunked)
        answer->has_size = false;
    bool has_none = answer->status == 204 || answer->status == 304 || answer->status < 200;
    if (has_none) {
        answer->is_chunked = false;
        answer->has_size = true;
        answer->left = 0;
    } else if (answer->is_chunked) {
        answer->left = 0;
    }
    return ANSWER_WHOLE;
}

int port_answer_read(struct port_answer *answer, const char *bytes, size_t size, size_t *ret_used,
                     error *err)
{
    /* The end is three bytes at most: what was looked through before is not looked through again.
     */
    for (size_t i = answer->looked > 2 ? answer->looked - 2 : 0; i + 1 < size; i++) {
        bool is_end =
            bytes[i] == '\n' && (bytes[i + 1] == '\n' ||
                                 (i + 2 < size && bytes[i + 1] == '\r' && bytes[i + 2] == '\n'));
        if (!is_end)
            continue;
        *ret_used = i + (bytes[i + 1] == '\n' ? 2 : 3);
        bytes_done(&answer->headers);
        *answer = (struct port_answer){ .status = 0 };
        return read_lines(answer, bytes, *ret_used, err);
    }
    answer->looked = size;
    return size < PORT_HEAD_MAX ? ANSWER_CUT : refuse(err, "with a head that does not end");
}

static int read_chunk_size(struct port_answer *answer, const char *line, size_t size, error *err)
{
    uint64_t number = 0;
    size_t digits = 0;
    for (; digits < size && digits < 15; digits++) {
        static const char hex[] = "0123456789abcdef0123456789ABCDEF";
        const char *at = line[digits] ? strchr(hex, line[digits]) : NULL;
        if (!at)
            break;
        number = number << 4 | (uint64_t) ((at - hex) & 15);
    }
    if (digits == 0 || (digits < size && line[digits] != ';' && line[digits] != ' '))
        return refuse(err, "with a chunk that is none");
    answer->left = number;
    answer->chunk = number > 0 ? CHUNK_BYTES : CHUNK_LAST;
    return 0;
}

static int take_line(struct port_answer *answer, const char *line, size_t size, error *err)
{
    if (size > 0 && line[size - 1] == '\r')
        size--;
    if (answer->chunk == CHUNK_SIZE)
        return read_chunk_size(answer, line, size, err);
    if (answer->chunk == CHUNK_LINE) {
        answer->chunk = CHUNK_SIZE;
        return size == 0 ? 0 : refuse(err, "with a chunk that does not end");
    }
    if (size == 0) /* trailers go no further */
        answer->chunk = CHUNKS_END;
    return 0;
}

int port_answer_body(struct port_answer *answer, struct port_piece *piece, error *err)
{
    char *bytes = piece->bytes;
    size_t size = piece->size;
    size_t at = 0;
    size_t kept = 0;
    while (at < size && answer->chunk != CHUNKS_END) {
        if (answer->chunk == CHUNK_BYTES) {
            size_t part = answer->left < size - at ? (size_t) answer->left : size - at;
            memmove(bytes + kept, bytes + at, part);
            kept += part;
            at += part;
            answer->left -= part;
            if (answer->left == 0)
                answer->chunk = CHUNK_LINE;
            continue;
        }
        const char *line_end = memchr(bytes + at, '\n', size - at);
        if (!line_end && size - at > 4096)
            return refuse(err, "with a chunk that is none");
        if (!line_end)
            break;
        size_t length = (size_t) (line_end - bytes) - at;
        if (take_line(answer, bytes + at, length, err) < 0)
            return -1;
        at += length + 1;
    }
    piece->used = at;
    piece->kept = kept;
    return 0;
}
