/* exchange.c - one request to an endpoint, from its head to the end of its answer.
 *
 *     connection.c --socketpair--> exchange --libcurl--> the upstream
 *
 * What code sent as a header of a secret's name is left out, the secret is put in, redirects come
 * back to code as they are (within the upstream: with the endpoint's own name), and no answer holds
 * the secret. At most one piece of the answer is held: what cannot be passed on is not read. */
#include "egress/exchange.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "egress/answer_head.h"
#include "egress/http_head.h"
#include "model/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PIECE = CURL_MAX_WRITE_SIZE,
    FRAME = 24, /* the size of a chunk before it, the end of it after it */
    OUT_ROOM = ANSWER_HEAD_MOST + PIECE + SCRUB_WORD_MOST + 2 * FRAME,
    CONNECT_MS = 10000,
};

struct exchange {
    struct upstreams *upstreams;
    struct egress_endpoint endpoint;
    const struct secret *secret; /* NULL: nothing is added */
    unsigned address_count;
    struct in6_addr addresses[16];
    int socket;
    uv_poll_t poll;
    CURL *easy; /* NULL until the head has come */
    struct curl_slist *fields, *resolved;
    struct http_head head;
    struct http_chunks chunks;
    uint64_t body_left; /* of the request */
    bool body_is_over;
    bool waits_for_body, waits_for_room; /* libcurl is paused */
    bool is_over;                        /* libcurl has nothing more for us */
    bool is_ended;                       /* everything has been written, or it has failed */
    enum egress_reason failure;
    struct answer_head answer;
    struct scrub scrub;
    uint64_t scrubbed; /* of what came before the body */
    size_t in_size, in_from;
    size_t out_size, out_from;
    char in[HTTP_HEAD_MOST + 2048];
    char out[OUT_ROOM];
};

static void socket_is_ready(uv_poll_t *poll, int status, int events);

static void watch(struct exchange *exchange)
{
    bool reads = !exchange->easy || exchange->waits_for_body;
    bool writes = exchange->out_from < exchange->out_size;
    int events = exchange->is_ended ? 0 : (reads ? UV_READABLE : 0) | (writes ? UV_WRITABLE : 0);
    if (events)
        (void) uv_poll_start(&exchange->poll, events, socket_is_ready);
    else
        (void) uv_poll_stop(&exchange->poll);
}

/* The other end sees the end; connection.c asks why, and drops us. */
static void end(struct exchange *exchange, enum egress_reason failure)
{
    if (exchange->is_ended)
        return;
    exchange->is_ended = true;
    exchange->failure = failure;
    (void) shutdown(exchange->socket, SHUT_WR);
    watch(exchange);
}

/* --- the answer ---------------------------------------------------------------------------------
 */

static void flush(struct exchange *exchange)
{
    while (exchange->out_from < exchange->out_size) {
        ssize_t sent = send(exchange->socket, exchange->out + exchange->out_from,
                            exchange->out_size - exchange->out_from, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (sent < 0) {
            end(exchange, EGRESS_BROKEN_OFF);
            return;
        }
        exchange->out_from += (size_t) sent;
    }
    exchange->out_from = exchange->out_size = 0;
}

static void put(struct exchange *exchange, const char *bytes, size_t size)
{
    memmove(exchange->out + exchange->out_size, bytes, size);
    exchange->out_size += size;
}

/* `size` clean bytes stand at out_size + FRAME; here they get their frame. */
static void add_piece(struct exchange *exchange, size_t size)
{
    const char *piece = exchange->out + exchange->out_size + FRAME;
    char length[FRAME] = "";
    if (size == 0)
        return;
    if (exchange->answer.is_chunked)
        (void) snprintf(length, sizeof length, "%zx\r\n", size);
    put(exchange, length, strlen(length));
    put(exchange, piece, size);
    if (exchange->answer.is_chunked)
        put(exchange, "\r\n", 2);
}

/* The head goes through a scrub of its own. Returns -1 if it does not pass. */
static int put_head(struct exchange *exchange)
{
    static char text[ANSWER_HEAD_MOST];
    size_t size = answer_head_write(&exchange->answer, &exchange->endpoint, text);
    if (size == 0 || (exchange->answer.is_encoded && exchange->secret))
        return -1;
    size_t clean = scrub_take(&exchange->scrub, text, size, exchange->out);
    clean += scrub_end(&exchange->scrub, exchange->out + clean);
    exchange->out_size = clean;
    exchange->scrubbed = exchange->scrub.found;
    scrub_init(&exchange->scrub, exchange->scrub.words, exchange->scrub.count);
    return 0;
}

static size_t field_came(char *bytes, size_t one, size_t size, void *context)
{
    struct exchange *exchange = context;
    (void) one;
    switch (answer_head_take(&exchange->answer, bytes, size)) {
    case ANSWER_MORE:
        return size;
    case ANSWER_WHOLE:
        return put_head(exchange) < 0 ? 0 : size;
    case ANSWER_BAD:
        break;
    }
    return 0;
}

static size_t body_came(char *bytes, size_t one, size_t size, void *context)
{
    struct exchange *exchange = context;
    (void) one;
    flush(exchange);
    if (exchange->is_ended || !exchange->answer.is_whole || size > PIECE)
        return 0;
    if (exchange->out_size > 0) {
        exchange->waits_for_room = true;
        watch(exchange);
        return CURL_WRITEFUNC_PAUSE;
    }
    add_piece(exchange, scrub_take(&exchange->scrub, bytes, size, exchange->out + FRAME));
    flush(exchange);
    watch(exchange);
    return size;
}

/* What was kept back, and the end of all chunks. */
static void finish(struct exchange *exchange)
{
    flush(exchange);
    if (exchange->is_ended || exchange->out_size > 0)
        return;
    if (exchange->answer.is_whole) {
        exchange->answer.is_whole = false; /* once */
        add_piece(exchange, scrub_end(&exchange->scrub, exchange->out + FRAME));
        if (exchange->answer.is_chunked)
            put(exchange, "0\r\n\r\n", 5);
        flush(exchange);
    }
    if (exchange->out_size == 0)
        end(exchange, EGRESS_ALLOWED);
}

static enum egress_reason reason_of(CURLcode result)
{
    static const struct {
        CURLcode result;
        enum egress_reason reason;
    } table[] = {
        { CURLE_COULDNT_CONNECT, EGRESS_UNREACHABLE },
        { CURLE_OPERATION_TIMEDOUT, EGRESS_UNREACHABLE },
        { CURLE_PEER_FAILED_VERIFICATION, EGRESS_NO_TRUST },
        { CURLE_SSL_CONNECT_ERROR, EGRESS_NO_TRUST },
    };
    for_each(row, table)
        if (row->result == result)
            return row->reason;
    return EGRESS_BROKEN_OFF;
}

void exchange_ended(struct exchange *exchange, CURLcode result)
{
    exchange->is_over = true;
    if (result == CURLE_OK && exchange->answer.is_whole) {
        finish(exchange);
        watch(exchange);
        return;
    }
    flush(exchange);
    end(exchange, result == CURLE_OK ? EGRESS_BROKEN_OFF : reason_of(result));
}

/* --- the request --------------------------------------------------------------------------------
 */

/* Bytes that have come and were not used yet. Returns 0 at the end, -1 while there are none. */
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
        size_t has = exchange->in_size - exchange->in_from;
        size_t used;
        enum http_chunk_verdict verdict =
            http_chunks_take(&exchange->chunks, at, has < size - taken ? has : size - taken, &used);
        if (verdict == CHUNK_DATA) {
            memcpy(room + taken, at, used);
            taken += used;
        }
        exchange->in_from += used;
        if (verdict == CHUNK_BAD)
            return CURL_READFUNC_ABORT; /* half a body is not sent as if it were whole */
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
            watch(exchange);
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
    static char line[HTTP_HEAD_MOST + 16];
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

/* What the code does not say to an upstream: anything of a secret's name, and in which coding or in
 * which pieces the answer should come, for a secret in it is looked for in what is plain and whole.
 */
static bool is_left_out(const struct exchange *exchange, const struct http_field *field)
{
    if (is_secret(exchange, field) || http_field_is(field, "accept-encoding"))
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
        exchange->fields = curl_slist_append(exchange->fields, "Accept:"); /* leaves it out */
    exchange->fields = curl_slist_append(exchange->fields, "Expect:");
    exchange->fields = curl_slist_append(exchange->fields, "Accept-Encoding: identity");
    if (exchange->head.is_chunked)
        exchange->fields = curl_slist_append(exchange->fields, "Transfer-Encoding: chunked");
    for (unsigned i = 0; exchange->secret && i < exchange->secret->header_count; i++) {
        const struct secret_header *header = &exchange->secret->headers[i];
        add_field(exchange, header->name, strlen(header->name), header->value,
                  strlen(header->value));
    }
}

/* "host:port:address,address": libcurl asks nobody. */
static void add_addresses(struct exchange *exchange)
{
    char line[HOST_NAME_SIZE + 16 + 16 * (ADDRESS_TEXT + 3)];
    int used =
        snprintf(line, sizeof line, "%s:%u:", exchange->endpoint.host, exchange->endpoint.port);
    for (unsigned i = 0; i < exchange->address_count; i++) {
        char address[ADDRESS_TEXT];
        address_write(&exchange->addresses[i], address);
        used += snprintf(line + used, sizeof line - (size_t) used,
                         strchr(address, ':') ? "%s[%s]" : "%s%s", i > 0 ? "," : "", address);
    }
    exchange->resolved = curl_slist_append(NULL, line);
}

/* The last word on where it goes: an address that was checked, and no other. */
static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *to)
{
    const struct exchange *exchange = context;
    struct in6_addr address = IN6ADDR_ANY_INIT;
    (void) purpose;
    if (to->family == AF_INET)
        address_map(&((const struct sockaddr_in *) (const void *) &to->addr)->sin_addr, &address);
    else if (to->family == AF_INET6)
        address = ((const struct sockaddr_in6 *) (const void *) &to->addr)->sin6_addr;
    for (unsigned i = 0; i < exchange->address_count; i++)
        if (memcmp(&address, &exchange->addresses[i], sizeof address) == 0)
            return socket(to->family, to->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, to->protocol);
    return CURL_SOCKET_BAD;
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

static void set_protocol(struct exchange *exchange)
{
    CURL *easy = exchange->easy;
    (void) curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void) curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    (void) curl_easy_setopt(easy, CURLOPT_PROXY, "");
    (void) curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    (void) curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    (void) curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    (void) curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    (void) curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void) curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long) PIECE);
    (void) curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long) CONNECT_MS);
    (void) curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    (void) curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    (void) curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long) CURL_SSLVERSION_TLSv1_2);
    (void) curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
    (void) curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    (void) curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, upstreams_trust);
    (void) curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, exchange->upstreams);
    (void) curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    (void) curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, exchange);
    (void) curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, field_came);
    (void) curl_easy_setopt(easy, CURLOPT_HEADERDATA, exchange);
    (void) curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, body_came);
    (void) curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
    (void) curl_easy_setopt(easy, CURLOPT_PRIVATE, exchange);
}

/* The head has come: the request goes out. */
static int send_request(struct exchange *exchange)
{
    const struct egress_endpoint *endpoint = &exchange->endpoint;
    const struct http_head *head = &exchange->head;
    auto_text url = NULL;
    char method[EGRESS_METHOD_SIZE];
    exchange->easy = curl_easy_init();
    if (!exchange->easy ||
        asprintf(&url, "%s://%s:%u%s%.*s", endpoint->is_tls ? "https" : "http", endpoint->host,
                 endpoint->port, endpoint->path, (int) head->path.size, head->path.at) < 0)
        return -1;
    (void) snprintf(method, sizeof method, "%.*s", (int) head->method.size, head->method.at);
    set_protocol(exchange);
    set_body(exchange, method);
    add_fields(exchange);
    add_addresses(exchange);
    exchange->answer.has_no_body = strcmp(method, "HEAD") == 0;
    if (curl_easy_setopt(exchange->easy, CURLOPT_URL, url) != CURLE_OK ||
        curl_easy_setopt(exchange->easy, CURLOPT_HTTPHEADER, exchange->fields) != CURLE_OK ||
        curl_easy_setopt(exchange->easy, CURLOPT_RESOLVE, exchange->resolved) != CURLE_OK ||
        curl_multi_add_handle(exchange->upstreams->multi, exchange->easy) != CURLM_OK)
        return -1;
    return 0;
}

static void read_head(struct exchange *exchange)
{
    enum egress_reason reason;
    ssize_t got = recv(exchange->socket, exchange->in + exchange->in_size,
                       sizeof exchange->in - exchange->in_size, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    exchange->in_size += got > 0 ? (size_t) got : 0;
    switch (http_head_read(exchange->in, exchange->in_size, 80, &exchange->head, &reason)) {
    case HTTP_MORE:
        if (got > 0)
            return;
        break;
    case HTTP_BAD:
        break;
    case HTTP_WHOLE:
        exchange->in_from = exchange->head.size;
        if (send_request(exchange) == 0)
            return;
        break;
    }
    end(exchange, EGRESS_BAD_REQUEST);
}

/* --- the loop's calls, the beginning and the end -------------------------------------------------
 */

static void socket_is_ready(uv_poll_t *poll, int status, int events)
{
    struct exchange *exchange = poll->data;
    if (status < 0) {
        end(exchange, EGRESS_BROKEN_OFF);
        return;
    }
    if (!exchange->easy) {
        read_head(exchange);
        watch(exchange);
        return;
    }
    bool was_paused = exchange->waits_for_body || exchange->waits_for_room;
    if (events & UV_READABLE)
        exchange->waits_for_body = false;
    if (events & UV_WRITABLE)
        flush(exchange);
    if (exchange->out_size == 0)
        exchange->waits_for_room = false;
    if (exchange->is_over)
        finish(exchange);
    else if (was_paused && !exchange->is_ended)
        (void) curl_easy_pause(exchange->easy, (exchange->waits_for_body ? CURLPAUSE_SEND : 0) |
                                                   (exchange->waits_for_room ? CURLPAUSE_RECV : 0));
    watch(exchange);
}

enum egress_reason exchange_begin(struct upstreams *upstreams, const struct exchange_order *order,
                                  int *ret_socket, struct exchange **ret_exchange)
{
    int pair[2];
    const struct egress_endpoint *endpoint = order->endpoint;
    const struct secret *secret = secrets_find(upstreams->secrets, endpoint);
    if (!secret && endpoint->header_count > 0)
        return EGRESS_NO_SECRET;
    if (!rate_allows(endpoint))
        return EGRESS_TOO_OFTEN;
    struct exchange *exchange =
        upstreams->exchanges < EXCHANGES_MOST ? calloc(1, sizeof *exchange) : NULL;
    if (!exchange || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
        free(exchange);
        return EGRESS_TOO_MANY;
    }
    if (uv_poll_init(upstreams->loop, &exchange->poll, pair[0]) < 0) {
        (void) close(pair[0]);
        (void) close(pair[1]);
        free(exchange);
        return EGRESS_TOO_MANY;
    }
    exchange->upstreams = upstreams;
    exchange->endpoint = *endpoint;
    exchange->secret = endpoint->header_count > 0 ? secret : NULL;
    exchange->socket = pair[0];
    exchange->poll.data = exchange;
    exchange->address_count = order->address_count;
    memcpy(exchange->addresses, order->addresses, order->address_count * sizeof *order->addresses);
    scrub_init(&exchange->scrub, exchange->secret ? secret->words : NULL,
               exchange->secret ? secret->word_count : 0);
    upstreams->exchanges++;
    watch(exchange);
    *ret_socket = pair[1];
    *ret_exchange = exchange;
    return EGRESS_ALLOWED;
}

enum egress_reason exchange_failure(const struct exchange *exchange)
{
    return exchange->failure;
}

uint64_t exchange_scrubbed(const struct exchange *exchange)
{
    return exchange->scrubbed + exchange->scrub.found;
}

static void poll_closed(uv_handle_t *handle)
{
    struct exchange *exchange = handle->data;
    (void) close(exchange->socket);
    free(exchange);
}

void exchange_drop(struct exchange *exchange)
{
    if (!exchange)
        return;
    exchange->is_ended = true;
    exchange->upstreams->exchanges--;
    if (exchange->easy) {
        (void) curl_multi_remove_handle(exchange->upstreams->multi, exchange->easy);
        curl_easy_cleanup(exchange->easy);
    }
    curl_slist_free_all(exchange->fields);
    curl_slist_free_all(exchange->resolved);
    uv_close((uv_handle_t *) &exchange->poll, poll_closed);
}
