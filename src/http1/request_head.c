/* request_head.c - see request_head.h. */
#include "http1/request_head.h"

#include "base/http_method.h"
#include "base/table.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Not forwarded: glovebox writes these fields itself, or they belong to this hop. */
static const char *const dropped[] = {
    "host", "content-length", "expect", "http2-settings",
    /* Some servers let these replace the method, path or host that was checked. */
    "x-http-method-override", "x-http-method", "x-method-override", "x-original-method",
    "x-forwarded-method", "x-original-url", "x-original-uri", "x-rewrite-url", "x-override-url",
    "x-forwarded-url", "x-forwarded-uri", "x-forwarded-path", "x-forwarded-prefix",
    "x-envoy-original-path", "x-forwarded-host", "x-original-host", "x-host", "forwarded"
};

/* Takes one line without its CRLF. Returns 1; 0 if its end has not come; -1 for a bare CR, LF or
 * NUL. */
static int take_line(const char **at, const char *end, struct http_text *ret_line)
{
    for (const char *c = *at; c < end; c++) {
        if (*c == '\n' || *c == '\0')
            return -1;
        if (*c != '\r')
            continue;
        if (c + 1 == end)
            return 0;
        if (c[1] != '\n')
            return -1;
        *ret_line = (struct http_text){ *at, (size_t) (c - *at) };
        *at = c + 2;
        return 1;
    }
    return 0;
}

/* Reads "host", "host:port" or "[literal]:port". Returns -1 for another form. */
static int read_authority(struct http_text text, uint16_t default_port, struct http_head *head)
{
    size_t host = text.size;
    head->port = default_port;
    const char *bracket =
        text.size > 0 && text.at[0] == '[' ? memchr(text.at, ']', text.size) : NULL;
    size_t from = bracket ? (size_t) (bracket - text.at) : 0;
    const char *colon = memchr(text.at + from, ':', text.size - from);
    if (colon) {
        host = (size_t) (colon - text.at);
        unsigned port = 0;
        size_t digits = text.size - host - 1;
        for (size_t i = 0; i < digits; i++) {
            char c = colon[1 + i];
            if (c < '0' || c > '9' || digits > 5)
                return -1;
            port = port * 10 + (unsigned) (c - '0');
        }
        if (port == 0 || port > 65535)
            return -1;
        head->port = (uint16_t) port;
    }
    head->is_literal = host_name_is_literal(text.at, host);
    if (!head->is_literal)
        return host_name_canonical(text.at, host, head->name);
    if (host >= sizeof head->name)
        return -1;
    memcpy(head->name, text.at, host);
    head->name[host] = '\0';
    return 0;
}

static bool target_is_printable(struct http_text target)
{
    for (size_t i = 0; i < target.size; i++)
        if (target.at[i] <= ' ' || target.at[i] >= 0x7f || target.at[i] == '#' ||
            target.at[i] == '\\')
            return false;
    return target.size > 0;
}

static int read_target(struct http_text target, uint16_t default_port, struct http_head *head)
{
    static const char scheme[] = "http://";
    enum { SCHEME = sizeof scheme - 1 };
    if (!target_is_printable(target))
        return -1;
    if (http_text_is(head->method, "CONNECT")) {
        head->target = HTTP_AUTHORITY;
        head->path = (struct http_text){ "/", 1 };
        return memchr(target.at, ':', target.size) ? read_authority(target, 0, head) : -1;
    }
    if (target.at[0] == '/') {
        head->target = HTTP_ORIGIN;
        head->path = target;
        return 0;
    }
    if (target.size <= SCHEME || strncasecmp(target.at, scheme, SCHEME) != 0)
        return -1;
    head->target = HTTP_ABSOLUTE;
    struct http_text rest = { target.at + SCHEME, target.size - SCHEME };
    size_t authority = 0;
    while (authority < rest.size && rest.at[authority] != '/' && rest.at[authority] != '?')
        authority++;
    if (memchr(rest.at, '@', authority))
        return -1; /* user:password@ can make readers mistake the host */
    head->path = (struct http_text){ rest.at + authority, rest.size - authority };
    if (head->path.size == 0)
        head->path = (struct http_text){ "/", 1 };
    else if (head->path.at[0] != '/')
        return -1;
    return read_authority((struct http_text){ rest.at, authority }, default_port, head);
}

static int read_request_line(struct http_text line, uint16_t default_port, struct http_head *head)
{
    const char *blank = memchr(line.at, ' ', line.size);
    if (!blank)
        return -1;
    head->method = (struct http_text){ line.at, (size_t) (blank - line.at) };
    struct http_text rest = { blank + 1, line.size - head->method.size - 1 };
    const char *second = memchr(rest.at, ' ', rest.size);
    if (!second || !http_is_token(head->method) || head->method.size >= HTTP_METHOD_SIZE)
        return -1;
    struct http_text version = { second + 1, rest.size - (size_t) (second - rest.at) - 1 };
    if (!(version.size == 8 && memcmp(version.at, "HTTP/1.", 7) == 0 &&
          (version.at[7] == '0' || version.at[7] == '1')))
        return -1;
    head->is_old = version.at[7] == '0';
    head->method_bit = http_method_bit(head->method.at, head->method.size);
    return read_target((struct http_text){ rest.at, (size_t) (second - rest.at) }, default_port,
                       head);
}

/* The Host field must name the host of the target, if the target has one. */
static enum http_fault read_host(struct http_text value, uint16_t default_port, bool is_second,
                                 struct http_head *head)
{
    struct http_head other = { 0 };
    if (is_second)
        return HTTP_MALFORMED;
    if (read_authority(value, head->target == HTTP_AUTHORITY ? head->port : default_port, &other) <
        0)
        return HTTP_BAD_HOST;
    if (head->target == HTTP_ORIGIN) {
        memcpy(head->name, other.name, sizeof head->name);
        head->is_literal = other.is_literal;
        head->port = other.port;
        return HTTP_NO_FAULT;
    }
    return strcmp(other.name, head->name) == 0 && other.port == head->port ? HTTP_NO_FAULT
                                                                           : HTTP_HOST_DIFFERS;
}

static enum http_fault read_field(struct http_field field, uint16_t default_port, bool *has_host,
                                  struct http_head *head)
{
    if (http_text_is(field.name, "host")) {
        enum http_fault fault = read_host(field.value, default_port, *has_host, head);
        *has_host = true;
        return fault;
    }
    if (http_text_is(field.name, "content-length")) {
        if (head->has_length || http_length_read(field.value, &head->length) < 0)
            return HTTP_MALFORMED;
        head->has_length = true;
    }
    if (http_text_is(field.name, "transfer-encoding")) {
        if (head->is_chunked || !http_text_is(field.value, "chunked"))
            return HTTP_MALFORMED;
        head->is_chunked = true;
    }
    if (http_text_is(field.name, "expect")) {
        if (!http_text_is(field.value, "100-continue"))
            return HTTP_MALFORMED;
        head->expects_continue = true;
    }
    if (http_text_is(field.name, "upgrade"))
        head->wants_upgrade = true;
    return HTTP_NO_FAULT;
}

static enum http_fault read_fields(const char **at, const char *end, uint16_t default_port,
                                   struct http_head *head)
{
    bool has_host = false;
    for (;;) {
        struct http_text line;
        int taken = take_line(at, end, &line);
        if (taken <= 0)
            return HTTP_MALFORMED;
        if (line.size == 0)
            break;
        struct http_field field;
        if (http_field_read(line.at, line.size, &field) < 0)
            return HTTP_MALFORMED;
        for (size_t i = 0; i < field.value.size; i++)
            if ((unsigned char) field.value.at[i] >= 0x80)
                return HTTP_MALFORMED;
        if (head->field_count == HTTP_FIELDS_MAX)
            return HTTP_TOO_LARGE;
        enum http_fault fault = read_field(field, default_port, &has_host, head);
        if (fault != HTTP_NO_FAULT)
            return fault;
        head->fields[head->field_count++] = field;
    }
    if (!has_host && head->target == HTTP_ORIGIN)
        return HTTP_MALFORMED;
    if (head->is_chunked && (head->has_length || head->is_old))
        return HTTP_MALFORMED; /* RFC 9112 section 6.1: HTTP/1.0 has no chunks */
    return head->wants_upgrade ? HTTP_UPGRADE : HTTP_NO_FAULT;
}

/* The offset of the empty line; 0 if it has not come yet. */
static size_t find_end(const char *bytes, size_t size)
{
    for (size_t i = 3; i < size; i++)
        if (bytes[i] == '\n' && memcmp(bytes + i - 3, "\r\n\r", 3) == 0)
            return i + 1;
    return 0;
}

/* Another kind of line end would make us wait for a CRLF that never comes. */
static bool is_odd(const char *bytes, size_t size)
{
    if (size == 0)
        return false;
    for (size_t i = 0; i < size; i++)
        if (bytes[i] == '\0' || (bytes[i] == '\n' && (i == 0 || bytes[i - 1] != '\r')))
            return true;
    return !http_is_token((struct http_text){ bytes, 1 });
}

enum http_verdict http_head_read(const char *bytes, size_t size, uint16_t default_port,
                                 struct http_head *ret_head, enum http_fault *ret_fault)
{
    *ret_head = (struct http_head){ .port = default_port };
    *ret_fault = HTTP_MALFORMED;
    size_t end = find_end(bytes, size < HTTP_HEAD_MAX ? size : HTTP_HEAD_MAX);
    if (end == 0) {
        if (size >= HTTP_HEAD_MAX)
            *ret_fault = HTTP_TOO_LARGE;
        return size >= HTTP_HEAD_MAX || is_odd(bytes, size) ? HTTP_BAD : HTTP_MORE;
    }
    const char *at = bytes;
    struct http_text line;
    if (take_line(&at, bytes + end, &line) <= 0)
        return HTTP_BAD;
    if (read_request_line(line, default_port, ret_head) < 0)
        return HTTP_BAD;
    ret_head->size = end;
    *ret_fault = read_fields(&at, bytes + end, default_port, ret_head);
    if (*ret_fault == HTTP_NO_FAULT && at != bytes + end)
        *ret_fault = HTTP_MALFORMED; /* an empty line before the end of the head */
    return *ret_fault == HTTP_NO_FAULT ? HTTP_WHOLE : HTTP_BAD;
}

static bool is_dropped(struct http_text name)
{
    const struct http_field field = { .name = name };
    for_each(word, dropped)
        if (http_field_is(&field, *word))
            return true;
    return http_field_is_hop_by_hop(&field);
}

bool http_field_may_be_added(const char *name)
{
    const struct http_text text = { name, strlen(name) };
    return http_is_token(text) && !http_text_is(text, "accept-encoding") && !is_dropped(text);
}

/* Fields that the Connection field names belong to this hop as well. */
bool http_field_goes_on(const struct http_head *head, const struct http_field *field)
{
    if (is_dropped(field->name))
        return false;
    for (unsigned i = 0; i < head->field_count; i++) {
        if (!http_text_is(head->fields[i].name, "connection"))
            continue;
        struct http_text list = head->fields[i].value;
        while (list.size > 0) {
            const char *comma = memchr(list.at, ',', list.size);
            size_t length = comma ? (size_t) (comma - list.at) : list.size;
            struct http_text option = http_text_trim((struct http_text){ list.at, length });
            if (option.size == field->name.size &&
                strncasecmp(option.at, field->name.at, option.size) == 0)
                return false;
            list.at += length + (comma != NULL);
            list.size -= length + (comma != NULL);
        }
    }
    return true;
}

size_t http_head_write(const struct http_head *head, char *ret_bytes, size_t size)
{
    FILE *out = fmemopen(ret_bytes, size, "w");
    if (!out)
        return 0;
    (void) fprintf(out, "%.*s %.*s HTTP/1.1\r\nHost: %s", (int) head->method.size, head->method.at,
                   (int) head->path.size, head->path.at, head->name);
    if (head->port != 80)
        (void) fprintf(out, ":%u", head->port);
    (void) fputs("\r\n", out);
    for (unsigned i = 0; i < head->field_count; i++) {
        const struct http_field *field = &head->fields[i];
        if (http_field_goes_on(head, field))
            (void) fprintf(out, "%.*s: %.*s\r\n", (int) field->name.size, field->name.at,
                           (int) field->value.size, field->value.at);
    }
    if (head->is_chunked)
        (void) fputs("Transfer-Encoding: chunked\r\n", out);
    else if (head->has_length)
        (void) fprintf(out, "Content-Length: %llu\r\n", (unsigned long long) head->length);
    (void) fputs("Connection: close\r\n\r\n", out);
    (void) fflush(out);
    long written = ftell(out);
    bool is_whole = !ferror(out) && written > 0 && (size_t) written < size;
    (void) fclose(out);
    return is_whole ? (size_t) written : 0;
}
