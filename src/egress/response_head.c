/* response_head.c - see response_head.h. */
#include "egress/response_head.h"

#include "http1/field.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool is_dropped(const struct http_field *field)
{
    return http_field_is_hop_by_hop(field) || http_text_is(field->name, "alt-svc") ||
           http_text_is(field->name, "strict-transport-security");
}

static enum answer_verdict begin(struct answer_head *answer, const char *line, size_t size)
{
    int status = http_status_read(line, size);
    *answer = (struct answer_head){ .has_no_body = answer->has_no_body,
                                    .status = status > 0 ? (unsigned) status : 0 };
    return status > 0 ? ANSWER_MORE : ANSWER_BAD;
}

static enum answer_verdict finish(struct answer_head *answer)
{
    if (answer->status < 200)
        return answer->status == 101 ? ANSWER_BAD : ANSWER_MORE;
    bool has_body = !answer->has_no_body && answer->status != 204 && answer->status != 304;
    answer->is_chunked = has_body && !answer->has_length;
    answer->is_whole = true;
    return ANSWER_WHOLE;
}

enum answer_verdict answer_head_take(struct answer_head *answer, const char *line, size_t size)
{
    struct http_field field;
    if (answer->is_whole)
        return ANSWER_MORE; /* trailers */
    if (size >= 5 && memcmp(line, "HTTP/", 5) == 0)
        return begin(answer, line, size);
    while (size > 0 && (line[size - 1] == '\n' || line[size - 1] == '\r'))
        size--;
    if (size == 0)
        return finish(answer);
    if (http_field_read(line, size, &field) < 0 || answer->size + size + 2 > sizeof answer->text)
        return ANSWER_BAD;
    bool is_length = http_text_is(field.name, "content-length");
    if (is_length && (answer->has_length || answer->has_coding))
        return ANSWER_BAD; /* two lengths, or a length and chunks: parsers differ in what counts */
    answer->has_length |= is_length;
    if (http_text_is(field.name, "transfer-encoding")) {
        answer->has_coding = true;
        return answer->has_length ? ANSWER_BAD : ANSWER_MORE;
    }
    if (http_text_is(field.name, "content-encoding"))
        answer->is_encoded = true;
    if (is_dropped(&field))
        return ANSWER_MORE;
    memcpy(answer->text + answer->size, line, size);
    memcpy(answer->text + answer->size + size, "\r\n", 2);
    answer->size += size + 2;
    return ANSWER_MORE;
}

/* The path of a redirect that leads below the endpoint's path. NULL: it leads elsewhere. */
static const char *within(const struct egress_endpoint *endpoint, const char *value, size_t size)
{
    char origins[2][HOST_NAME_SIZE + 16];
    const char *scheme = endpoint->is_tls ? "https" : "http";
    size_t base = strlen(endpoint->path), at = 0;
    (void) snprintf(origins[0], sizeof origins[0], "%s://%s:%u/", scheme, endpoint->host,
                    endpoint->port);
    (void) snprintf(origins[1], sizeof origins[1], "%s://%s/", scheme, endpoint->host);
    bool is_usual = endpoint->port == (endpoint->is_tls ? 443 : 80);
    for (unsigned i = 0; i < (is_usual ? 2U : 1U); i++)
        if (size >= strlen(origins[i]) && strncasecmp(value, origins[i], strlen(origins[i])) == 0)
            at = strlen(origins[i]) - 1;
    if (at == 0 && (size < 1 || value[0] != '/' || (size > 1 && value[1] == '/')))
        return NULL;
    if (size < at + base + 1 || memcmp(value + at, endpoint->path, base) != 0 ||
        value[at + base] != '/')
        return NULL;
    return value + at + base;
}

size_t answer_head_write(const struct answer_head *answer, const struct egress_endpoint *endpoint,
                         char ret_text[ANSWER_HEAD_MAX])
{
    FILE *out = fmemopen(ret_text, ANSWER_HEAD_MAX, "w");
    if (!out)
        return 0;
    (void) fprintf(out, "HTTP/1.1 %u Upstream\r\n", answer->status);
    for (size_t at = 0; at < answer->size;) {
        const char *line = answer->text + at;
        size_t size = (size_t) ((const char *) memchr(line, '\n', answer->size - at) - line) + 1;
        struct http_field field;
        at += size;
        if (http_field_read(line, size - 2, &field) < 0)
            continue; /* answer_head_take() has read it */
        if (endpoint->header_count > 0 && http_text_is(field.name, "set-cookie"))
            continue; /* a cookie can be used like the secret that it was given for */
        if (endpoint->name[0] && http_text_is(field.name, "location")) {
            const char *path = within(endpoint, field.value.at, field.value.size);
            const char *to = path ? path : field.value.at;
            int length = (int) (line + size - to); /* with its CRLF */
            if (path)
                (void) fprintf(out, "Location: http://%s.endpoint%.*s", endpoint->name, length, to);
            else if (*to == '/' && to[1] != '/') /* clients would resolve it below the endpoint */
                (void) fprintf(out, "Location: %s://%s:%u%.*s", endpoint->is_tls ? "https" : "http",
                               endpoint->host, endpoint->port, length, to);
            else
                (void) fwrite(line, 1, size, out);
            continue;
        }
        (void) fwrite(line, 1, size, out);
    }
    if (answer->is_chunked)
        (void) fputs("Transfer-Encoding: chunked\r\n", out);
    (void) fputs("Connection: close\r\n\r\n", out);
    (void) fflush(out);
    long written = ftell(out);
    bool is_whole = !ferror(out) && written > 0 && written < ANSWER_HEAD_MAX;
    (void) fclose(out);
    return is_whole ? (size_t) written : 0;
}
