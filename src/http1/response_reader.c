/* response_reader.c - reads the answer of a server inside a session, which may be hostile: a
 * malformed head or two lengths are refused, and headers that belong to the connection or to
 * glovebox are dropped. */
#include "http1/response_reader.h"

#include "base/table.h"
#include "http1/field.h"

#include <stdio.h>
#include <string.h>

bool port_header_is_ours(const char *name)
{
    static const char *const names[] = {
        "Content-Length", /* written anew */
        /* glovebox sets these for its own origin, which is not the server's */
        "Content-Security-Policy", "X-Content-Type-Options", "Strict-Transport-Security",
        "Clear-Site-Data", "Service-Worker-Allowed", "Set-Cookie", "X-Request-Id", "Alt-Svc",
        "Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Content-Type"
    };
    const struct http_field field = { .name = { name, strlen(name) } };
    for_each(each, names)
        if (http_text_is(field.name, *each))
            return true;
    return http_field_is_hop_by_hop(&field);
}

static int refuse(error *err, const char *why)
{
    return fail(err, ERR_UNREACHED, "the server in the session answers %s", why);
}

static int read_length(struct port_answer *answer, struct http_text value, error *err)
{
    uint64_t size;
    if (http_length_read(value, &size) < 0 || (answer->has_size && answer->left != size))
        return refuse(err, "with two lengths, or one that is no number");
    answer->has_size = true;
    answer->left = size;
    return 0;
}

static void keep_text(struct http_text text, char *ret_text, size_t size)
{
    (void) snprintf(ret_text, size, "%.*s", (int) text.size, text.at);
}

static int read_header(struct port_answer *answer, const char *line, size_t size, error *err)
{
    struct http_field field;
    if (http_field_read(line, size, &field) < 0 || field.name.size > 256 ||
        field.value.size > 16384)
        return refuse(err, "with a malformed header");
    if (http_text_is(field.name, "Content-Length"))
        return read_length(answer, field.value, err);
    if (http_text_is(field.name, "Transfer-Encoding")) {
        if (!http_text_is(field.value, "chunked"))
            return refuse(err, "in a transfer coding other than chunked");
        answer->is_chunked = true;
    } else if (http_text_is(field.name, "Content-Type")) {
        keep_text(field.value, answer->mime, sizeof answer->mime);
    } else if (http_text_is(field.name, "Upgrade")) {
        keep_text(field.value, answer->upgrade, sizeof answer->upgrade);
    }
    size_t before = answer->headers.size;
    bytes_print(&answer->headers, "%.*s%c%.*s%c", (int) field.name.size, field.name.at, 0,
                (int) field.value.size, field.value.at, 0);
    if (answer->headers.failed)
        return fail(err, ERR_SYSTEM, "no memory for a header");
    if (port_header_is_ours(answer->headers.data + before))
        answer->headers.size = before;
    return 0;
}

static int read_status(struct port_answer *answer, const char *line, size_t size, error *err)
{
    int status = http_status_read(line, size);
    if (status < 0)
        return refuse(err, "with a status line that is not HTTP/1.1");
    answer->status = (unsigned) status;
    return 0;
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
    /* An end of the head has at most three bytes, so earlier bytes are not searched again. */
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
    return size < PORT_HEAD_MAX ? ANSWER_CUT : refuse(err, "with a head that is too long");
}
