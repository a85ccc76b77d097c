/* upstream_send.c - sends a request to an endpoint on to the upstream by libcurl. */
#include "egress/upstream_request.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

/* Returns how many bytes have come and were not used yet; 0 at the end, -1 while there are none. */
static ssize_t fill(struct exchange *exchange)
{
    if (exchange->in_from < exchange->in_size)
        return (ssize_t) (exchange->in_size - exchange->in_from);
    ssize_t got = recv(exchange->socket, exchange->in, sizeof exchange->in, MSG_DONTWAIT);
    exchange->in_from = 0;
    exchange->in_size = got > 0 ? (size_t) got : 0;
    return got < 0 && errno != EAGAIN && errno != EINTR ? 0 : got;
}

static size_t take_counted(struct exchange *exchange, char *room, size_t size)
{
    size_t has = exchange->in_size - exchange->in_from;
    size = size < has ? size : has;
    if (size > exchange->body_left)
        size = (size_t) exchange->body_left;
    memcpy(room, exchange->in + exchange->in_from, size);
    exchange->in_from += size;
    exchange->body_left -= size;
    exchange->body_is_over = exchange->body_left == 0;
    return size;
}

/* Returns bytes taken, or CURL_READFUNC_ABORT. */
static size_t take_chunked(struct exchange *exchange, char *room, size_t size)
{
    size_t taken = 0;
    while (taken < size && exchange->in_from < exchange->in_size) {
        const char *at = exchange->in + exchange->in_from;
        size_t has = exchange->in_size - exchange->in_from, used;
        enum http_chunk_verdict verdict =
            http_chunks_take(&exchange->chunks, at, has < size - taken ? has : size - taken, &used);
        if (verdict == CHUNK_DATA) {
            memcpy(room + taken, at, used);
            taken += used;
        }
        exchange->in_from += used;
        if (verdict == CHUNK_BAD)
            return CURL_READFUNC_ABORT; /* an incomplete body must not look complete */
        exchange->body_is_over = verdict == CHUNK_END;
        if (exchange->body_is_over)
            break;
    }
    return taken;
}

static size_t body_is_wanted(char *room, size_t one, size_t count, void *context)
{
    struct exchange *exchange = context;
    size_t size = one * count;
    while (!exchange->body_is_over) {
        ssize_t has = fill(exchange);
        if (has == 0)
            return CURL_READFUNC_ABORT;
        if (has < 0) {
            exchange->waits_for_body = true;
            exchange_watch(exchange);
            return CURL_READFUNC_PAUSE;
        }
        size_t taken = exchange->head.is_chunked ? take_chunked(exchange, room, size)
                                                 : take_counted(exchange, room, size);
        if (taken > 0)
            return taken;
    }
    return 0;
}

static void add_field(struct exchange *exchange, const char *name, size_t name_size,
                      const char *value, size_t value_size)
{
    static char line[HTTP_HEAD_MAX + 16];
    (void) snprintf(line, sizeof line, value_size > 0 ? "%.*s: %.*s" : "%.*s;", (int) name_size,
                    name, (int) value_size, value);
    exchange->fields = curl_slist_append(exchange->fields, line);
    explicit_bzero(line, sizeof line);
}

static bool is_secret(const struct exchange *exchange, const struct http_field *field)
{
    for (unsigned i = 0; exchange->secret && i < exchange->secret->header_count; i++)
        if (http_field_is(field, exchange->secret->headers[i].name))
            return true;
    for (unsigned i = 0; i < exchange->endpoint.header_count; i++)
        if (http_field_is(field, exchange->endpoint.headers[i]))
            return true;
    return false;
}

/* Fields that are not sent to an upstream: those with a secret's name; and those that ask for a
 * coding or a range of the answer, since secrets can only be found in plain and whole answers. */
static bool is_left_out(const struct exchange *exchange, const struct http_field *field)
{
    bool is_host = exchange->endpoint.name[0] == '\0'; /* nothing is looked for */
    if (is_secret(exchange, field) || (!is_host && http_field_is(field, "accept-encoding")))
        return true;
    return exchange->secret && (http_field_is(field, "range") || http_field_is(field, "if-range"));
}

static void add_fields(struct exchange *exchange)
{
    bool says_what_it_accepts = false;
    for (unsigned i = 0; i < exchange->head.field_count; i++) {
        const struct http_field *field = &exchange->head.fields[i];
        if (!http_field_goes_on(&exchange->head, field) || is_left_out(exchange, field))
            continue;
        says_what_it_accepts |= http_field_is(field, "accept");
        add_field(exchange, field->name.at, field->name.size, field->value.at, field->value.size);
    }
    if (!says_what_it_accepts)
        exchange->fields = curl_slist_append(exchange->fields, "Accept:"); /* sends none */
    exchange->fields = curl_slist_append(exchange->fields, "Expect:");
    if (exchange->endpoint.name[0])
        exchange->fields = curl_slist_append(exchange->fields, "Accept-Encoding: identity");
    if (exchange->head.is_chunked)
        exchange->fields = curl_slist_append(exchange->fields, "Transfer-Encoding: chunked");
    for (unsigned i = 0; exchange->secret && i < exchange->secret->header_count; i++) {
        const struct secret_header *header = &exchange->secret->headers[i];
        add_field(exchange, header->name, strlen(header->name), header->value,
                  strlen(header->value));
    }
}

static void set_body(struct exchange *exchange, const char *method)
{
    const struct http_head *head = &exchange->head;
    bool has_body = head->is_chunked || head->has_length;
    exchange->body_left = head->has_length ? head->length : 0;
    exchange->body_is_over = !head->is_chunked && exchange->body_left == 0;
    if (has_body) {
        (void) curl_easy_setopt(exchange->easy, CURLOPT_UPLOAD, 1L);
        (void) curl_easy_setopt(exchange->easy, CURLOPT_INFILESIZE_LARGE,
                                head->is_chunked ? (curl_off_t) -1 : (curl_off_t) head->length);
        (void) curl_easy_setopt(exchange->easy, CURLOPT_READFUNCTION, body_is_wanted);
        (void) curl_easy_setopt(exchange->easy, CURLOPT_READDATA, exchange);
    } else if (strcmp(method, "HEAD") == 0)
        (void) curl_easy_setopt(exchange->easy, CURLOPT_NOBODY, 1L);
    (void) curl_easy_setopt(exchange->easy, CURLOPT_CUSTOMREQUEST, method);
}

static void set_callbacks(struct exchange *exchange)
{
    CURL *easy = exchange->easy;
    (void) curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long) PIECE);
    (void) curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, exchange_field_came);
    (void) curl_easy_setopt(easy, CURLOPT_HEADERDATA, exchange);
    (void) curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, exchange_body_came);
    (void) curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
}

/* The head has come: the request goes out. */
int exchange_send_request(struct exchange *exchange)
{
    const struct egress_endpoint *endpoint = &exchange->endpoint;
    const struct http_head *head = &exchange->head;
    auto_text url = NULL;
    char method[EGRESS_METHOD_SIZE];
    exchange->place = (struct transfer_place){ endpoint->host, endpoint->port, exchange->addresses,
                                               exchange->address_count };
    exchange->easy = transfer_new(exchange->upstreams->transfers, &exchange->place, exchange,
                                  &exchange->resolved);
    if (!exchange->easy ||
        asprintf(&url, "%s://%s:%u%s%.*s", endpoint->is_tls ? "https" : "http", endpoint->host,
                 endpoint->port, endpoint->path, (int) head->path.size, head->path.at) < 0)
        return -1;
    (void) snprintf(method, sizeof method, "%.*s", (int) head->method.size, head->method.at);
    set_callbacks(exchange);
    set_body(exchange, method);
    add_fields(exchange);
    exchange->answer.has_no_body = strcmp(method, "HEAD") == 0;
    if (curl_easy_setopt(exchange->easy, CURLOPT_URL, url) != CURLE_OK ||
        curl_easy_setopt(exchange->easy, CURLOPT_HTTPHEADER, exchange->fields) != CURLE_OK ||
        transfer_begin(exchange->upstreams->transfers, exchange->easy) < 0)
        return -1;
    return 0;
}
