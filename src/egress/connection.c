/* connection.c - one connection out of a sandbox, from its first byte to its record.
 *
 *  accepted --> request --> resolving --> connecting --> relaying --> over
 *      |          |  ^
 *      +--> hello-+  |  a request may be CONNECT, and a TLS greeting follows it
 *      +--> question |  DNS by TCP
 *      +-------------+--> lingering: a refusal is on its way to be read
 *
 * What is not understood is refused, what is refused is told in the protocol that the code speaks,
 * and every end has a record. Nothing is connected to before the name, the rule and the address
 * have been decided on; what is connected to is that very address. */
#include "egress/egress.h"

#include "base/clock.h"
#include "base/table.h"
#include "egress/client_hello.h"
#include "egress/dns.h"
#include "egress/flow.h"
#include "model/address.h"
#include "model/host_name.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    HEAD_MS = 5000,     /* a greeting or the head of a request must have come */
    CONNECT_MS = 10000, /* for each address */
    LINGER_MS = 2000,
    LINGERING_MOST = 64, /* connections beyond the most that are told so; others are just closed */
    FEW = 32,            /* connections of a channel that has room while there is any */
    PORT_TLS = 443,
};

enum state { IN_REQUEST, IN_HELLO, IN_QUESTION, RESOLVING, CONNECTING, RELAYING, LINGERING, OVER };

/* What the other side speaks, as far as a refusal must be told in it. */
enum speech { SPEAKS_NOTHING_WE_KNOW, SPEAKS_HTTP, SPEAKS_TLS };

/* The socket outside; each address that is tried has its own. */
struct outer {
    struct connection *connection;
    int socket;
    uv_poll_t poll;
    struct exchange *exchange; /* at its other end, where the way leads to an endpoint; or NULL */
};

struct connection {
    struct channel *channel;
    struct connection *next, **place;
    enum state state;
    enum speech speech;
    bool has_status; /* of the answer: it has begun */
    bool is_http;    /* a plain request: one, then the end */
    bool is_direct;  /* to an address, not to a name */
    bool in_tunnel;  /* a CONNECT was granted, to a port where HTTP is read */
    int inner;
    uv_poll_t inner_poll;
    struct outer *outer; /* NULL while there is none */
    uv_timer_t timer;
    unsigned handles;
    unsigned char *head; /* bytes read before anything is passed on */
    size_t head_size;
    size_t body_from; /* of these, the first of a request's body */
    const struct egress_rule *rule;
    struct lookup *lookup;
    struct in6_addr addresses[ADDRESSES_MOST];
    unsigned address_count, address_next;
    struct flow up, down;
    struct egress_record record;
    uint64_t began_us;
};

enum { HEAD_ROOM = HTTP_HEAD_MOST + 1024 /* a rewritten head has a Host and a Connection more */ };

static void inner_is_ready(uv_poll_t *poll, int status, int events);
static void outer_is_ready(uv_poll_t *poll, int status, int events);
static void time_is_up(uv_timer_t *timer);

/* --- ends ----------------------------------------------------------------------------------------
 */

static void handle_closed(uv_handle_t *handle)
{
    struct connection *connection = handle->data;
    if (--connection->handles > 0)
        return;
    (void) close(connection->inner);
    channel_handle_closed(connection->channel);
    free(connection);
}

static void tell(struct connection *connection, enum egress_reason reason)
{
    struct egress_record *record = &connection->record;
    const struct exchange *exchange = connection->outer ? connection->outer->exchange : NULL;
    if (exchange) {
        record->scrubbed = (uint32_t) exchange_scrubbed(exchange);
        if (reason == EGRESS_ALLOWED)
            reason = exchange_failure(exchange);
    }
    record->reason = (uint16_t) reason;
    record->label = connection->rule ? connection->rule->label : EGRESS_NO_LABEL;
    record->took_ms = (uint32_t) ((uv_hrtime() / 1000 - connection->began_us) / 1000);
    link_tell(connection->channel, record);
}

static void outer_closed(uv_handle_t *handle)
{
    struct outer *outer = handle->data;
    (void) close(outer->socket);
    free(outer);
}

static void drop_outer(struct connection *connection)
{
    if (!connection->outer)
        return;
    connection->outer->connection = NULL;
    exchange_drop(connection->outer->exchange);
    uv_close((uv_handle_t *) &connection->outer->poll, outer_closed);
    connection->outer = NULL;
}

void connection_end(struct connection *connection, enum egress_reason reason)
{
    if (connection->state == OVER)
        return;
    bool is_told = connection->state == LINGERING || connection->state == IN_QUESTION;
    connection->state = OVER;
    resolver_forget(connection->lookup);
    if (!is_told)
        tell(connection, reason);
    *connection->place = connection->next;
    if (connection->next)
        connection->next->place = connection->place;
    connection->channel->connections--;
    connection->channel->egress->connections--;
    flow_close(&connection->up);
    flow_close(&connection->down);
    free(connection->head);
    connection->head = NULL;
    uv_close((uv_handle_t *) &connection->inner_poll, handle_closed);
    uv_close((uv_handle_t *) &connection->timer, handle_closed);
    drop_outer(connection);
}

/* Lets the other side read what it was told: closing with unread bytes would take it away. */
static void linger(struct connection *connection)
{
    connection->state = LINGERING;
    drop_outer(connection);
    (void) shutdown(connection->inner, SHUT_WR);
    (void) uv_poll_start(&connection->inner_poll, UV_READABLE | UV_DISCONNECT, inner_is_ready);
    (void) uv_timer_start(&connection->timer, time_is_up, LINGER_MS, 0);
}

static void say_in_http(struct connection *connection, enum egress_reason reason)
{
    char body[1280];
    char rule[HOST_NAME_SIZE + 96] = "";
    char page[2048];
    const struct egress_record *record = &connection->record;
    if (reason == EGRESS_NO_RULE && record->name[0])
        (void) snprintf(rule, sizeof rule,
                        " A policy whose network.allow has {host: %s, ports: [%u]} lets it pass.",
                        record->name, record->port);
    int size =
        snprintf(body, sizeof body,
                 "glovebox: %s:%u is refused: %s. This is the policy of the sandbox and no "
                 "fault of the network: do not try other ways.%s\n",
                 record->name[0] ? record->name : "?", record->port, reason_text(reason), rule);
    unsigned status = reason_status(reason);
    int whole =
        snprintf(page, sizeof page,
                 "HTTP/1.1 %u %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
                 "Content-Length: %d\r\nX-Glovebox-Reason: %s\r\n"
                 "Connection: close\r\n\r\n%s",
                 status, status == 403 ? "Forbidden" : "Refused", size, reason_name(reason), body);
    (void) !send(connection->inner, page, (size_t) whole, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void say_in_tls(struct connection *connection)
{
    /* alert, TLS 1.2's number, two bytes: fatal, access_denied (RFC 8446 section 6.2) */
    static const unsigned char alert[] = { 21, 3, 3, 0, 2, 2, 49 };
    (void) !send(connection->inner, alert, sizeof alert, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void refuse(struct connection *connection, enum egress_reason reason)
{
    tell(connection, reason);
    if (connection->speech == SPEAKS_HTTP)
        say_in_http(connection, reason);
    else if (connection->speech == SPEAKS_TLS)
        say_in_tls(connection);
    linger(connection);
}

/* --- passing on ----------------------------------------------------------------------------------
 */

/* An endpoint whose upstream has not said a word: code is told why. */
static enum egress_reason endpoint_refusal(const struct connection *connection)
{
    const struct exchange *exchange = connection->outer->exchange;
    return exchange && connection->record.received == 0 ? exchange_failure(exchange)
                                                        : EGRESS_ALLOWED;
}

/* What the server answered, seen without taking it: "HTTP/1.1 200". Returns false while nothing has
 * come, so that no byte passes before it was looked at. */
static bool note_status(struct connection *connection)
{
    char first[13] = "";
    if (!connection->is_http || connection->has_status)
        return true;
    ssize_t got = recv(connection->outer->socket, first, sizeof first - 1, MSG_PEEK | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got == sizeof first - 1 && strncmp(first, "HTTP/1.", 7) == 0)
        connection->record.status = (uint16_t) strtoul(first + 9, NULL, 10);
    connection->has_status = true;
    return true;
}

static void watch_both(struct connection *connection)
{
    const struct flow *up = &connection->up;
    const struct flow *down = &connection->down;
    int inner =
        (flow_wants_read(up) ? UV_READABLE : 0) | (flow_wants_write(down) ? UV_WRITABLE : 0);
    int outer =
        (flow_wants_read(down) ? UV_READABLE : 0) | (flow_wants_write(up) ? UV_WRITABLE : 0);
    if (inner)
        (void) uv_poll_start(&connection->inner_poll, inner, inner_is_ready);
    else
        (void) uv_poll_stop(&connection->inner_poll);
    if (outer)
        (void) uv_poll_start(&connection->outer->poll, outer, outer_is_ready);
    else
        (void) uv_poll_stop(&connection->outer->poll);
}

/* One direction, within what the channel may still pass. Returns false if that is used up. */
static bool pump(struct flow *flow, uint64_t *used, uint64_t most, uint64_t *counted)
{
    uint64_t taken;
    flow_pump(flow, most > *used ? most - *used : 0, &taken);
    *used += taken;
    *counted += taken;
    return *used < most || !flow_wants_read(flow);
}

static void relay(struct connection *connection)
{
    struct channel *channel = connection->channel;
    struct egress_record *record = &connection->record;
    enum egress_reason refusal = endpoint_refusal(connection);
    if (refusal != EGRESS_ALLOWED) {
        refuse(connection, refusal);
        return;
    }
    bool may_send = pump(&connection->up, &channel->sent, channel->terms.sent_most, &record->sent);
    bool may_receive =
        !note_status(connection) || pump(&connection->down, &channel->received,
                                         channel->terms.received_most, &record->received);
    if (!may_send)
        connection_end(connection, EGRESS_SENT_TOO_MUCH);
    else if (!may_receive)
        connection_end(connection, EGRESS_RECEIVED_TOO_MUCH);
    else if (connection->down.fails)
        connection_end(connection, EGRESS_ALLOWED);
    else if (connection->down.is_done &&
             (connection->is_http || connection->up.is_done || connection->up.fails)) {
        tell(connection, EGRESS_ALLOWED);
        linger(connection);
    } else
        watch_both(connection);
}

/* What was read so far, before everything else: the head as it is, the body as its kind asks. */
static int put_head(struct connection *connection, enum flow_body body, uint64_t left)
{
    struct flow *up = &connection->up;
    size_t head = connection->is_http ? connection->body_from : connection->head_size;
    up->body = body;
    up->left = left;
    if (connection->head_size > HTTP_HEAD_MOST / 2 &&
        fcntl(up->pipe[1], F_SETPIPE_SZ, 4 * HTTP_HEAD_MOST) < 0)
        return -1;
    if (flow_put(up, connection->head, head) < 0)
        return -1;
    return flow_put_body(up, (const char *) connection->head + head, connection->head_size - head);
}

static void begin_relay(struct connection *connection)
{
    enum flow_body body = connection->up.body; /* decided with the request */
    uint64_t left = connection->up.left;
    connection->up.pipe[0] = connection->up.pipe[1] = -1;
    connection->state = RELAYING;
    if (flow_open(&connection->up, connection->inner, connection->outer->socket) < 0 ||
        flow_open(&connection->down, connection->outer->socket, connection->inner) < 0 ||
        put_head(connection, body, left) < 0) {
        connection_end(connection, EGRESS_BAD_REQUEST);
        return;
    }
    connection->channel->sent += connection->head_size;
    connection->record.sent += connection->head_size;
    free(connection->head);
    connection->head = NULL;
    uint32_t most = connection->channel->terms.duration_ms;
    if (most > 0)
        (void) uv_timer_start(&connection->timer, time_is_up, most, 0);
    else
        (void) uv_timer_stop(&connection->timer);
    relay(connection);
}

/* --- connecting ----------------------------------------------------------------------------------
 */

static socklen_t fill_address(const struct in6_addr *address, uint16_t port,
                              struct sockaddr_storage *ret_address)
{
    memset(ret_address, 0, sizeof *ret_address);
    if (IN6_IS_ADDR_V4MAPPED(address)) {
        struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(port) };
        memcpy(&four.sin_addr, &address->s6_addr[12], 4);
        memcpy(ret_address, &four, sizeof four);
        return sizeof four;
    }
    struct sockaddr_in6 six = { .sin6_family = AF_INET6,
                                .sin6_port = htons(port),
                                .sin6_addr = *address };
    memcpy(ret_address, &six, sizeof six);
    return sizeof six;
}

static void connect_next(struct connection *connection);

static void outer_is_ready(uv_poll_t *poll, int status, int events)
{
    struct outer *outer = poll->data;
    struct connection *connection = outer->connection;
    int cause = status < 0 ? ECONNREFUSED : 0;
    socklen_t size = sizeof cause;
    (void) events;
    if (!connection)
        return;
    if (connection->state == RELAYING) {
        relay(connection);
        return;
    }
    if (status == 0 && getsockopt(outer->socket, SOL_SOCKET, SO_ERROR, &cause, &size) < 0)
        cause = errno;
    if (cause != 0) {
        drop_outer(connection);
        connect_next(connection);
        return;
    }
    begin_relay(connection);
}

/* The socket outside is watched from now on. Takes the socket. */
static int add_outer(struct connection *connection, int socket)
{
    struct outer *outer = calloc(1, sizeof *outer);
    if (!outer || uv_poll_init(&connection->channel->egress->loop, &outer->poll, socket) < 0) {
        free(outer);
        (void) close(socket);
        return -1;
    }
    outer->connection = connection;
    outer->socket = socket;
    outer->poll.data = outer;
    connection->outer = outer;
    return 0;
}

/* Returns 0 when an attempt is under way. */
static int connect_to(struct connection *connection, const struct in6_addr *address)
{
    struct sockaddr_storage to;
    socklen_t size = fill_address(address, connection->record.port, &to);
    int one = 1;
    int made = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (made < 0)
        return -1;
    (void) setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (address_is_loopback(address))
        flow_keeps_to_host(made);
    if (connect(made, (struct sockaddr *) &to, size) < 0 && errno != EINPROGRESS) {
        (void) close(made);
        return -1;
    }
    if (add_outer(connection, made) < 0)
        return -1;
    memcpy(connection->record.address, address, sizeof *address);
    return uv_poll_start(&connection->outer->poll, UV_WRITABLE, outer_is_ready);
}

/* libcurl goes there; we talk with it as with a host. */
static void reach_endpoint(struct connection *connection, const struct egress_endpoint *endpoint)
{
    const struct exchange_order order = { endpoint, connection->addresses,
                                          connection->address_count };
    struct exchange *exchange;
    int made;
    enum egress_reason reason =
        exchange_begin(connection->channel->egress->upstreams, &order, &made, &exchange);
    if (reason == EGRESS_ALLOWED && add_outer(connection, made) < 0) {
        exchange_drop(exchange);
        reason = EGRESS_TOO_MANY;
    }
    if (reason != EGRESS_ALLOWED) {
        refuse(connection, reason);
        return;
    }
    connection->outer->exchange = exchange;
    connection->record.is_tls = endpoint->is_tls;
    memcpy(connection->record.address, &connection->addresses[0], sizeof connection->addresses[0]);
    begin_relay(connection);
}

static void connect_next(struct connection *connection)
{
    connection->state = CONNECTING;
    while (connection->address_next < connection->address_count) {
        (void) uv_timer_start(&connection->timer, time_is_up, CONNECT_MS, 0);
        if (connect_to(connection, &connection->addresses[connection->address_next++]) == 0)
            return;
        drop_outer(connection);
    }
    refuse(connection, EGRESS_UNREACHABLE);
}

/* Keeps the addresses that the rule may lead to. The table of special addresses and this host's own
 * come before every rule but one that opens a network by its number. */
static void addresses_came(void *context, const struct in6_addr *addresses, unsigned count)
{
    struct connection *connection = context;
    const struct egress_rule *rule = connection->rule;
    bool is_by_number = rule->flags & (EGRESS_PRIVATE | EGRESS_NETWORK);
    connection->lookup = NULL;
    for (unsigned i = 0; i < count && connection->address_count < ADDRESSES_MOST; i++)
        if (rule_accepts_address(rule, &addresses[i]) &&
            (is_by_number || !address_is_own(&addresses[i])))
            connection->addresses[connection->address_count++] = addresses[i];
    const struct egress_endpoint *endpoint = rules_endpoint(&connection->channel->rules, rule);
    if (connection->address_count > 0 && endpoint)
        reach_endpoint(connection, endpoint);
    else if (connection->address_count > 0)
        connect_next(connection);
    else
        refuse(connection, count > 0 ? EGRESS_SPECIAL_ADDRESS : EGRESS_NOT_FOUND);
}

/* The rule is known; nothing more is read from the code until the way out stands. */
static void go_out(struct connection *connection, const struct egress_rule *rule)
{
    struct channel *channel = connection->channel;
    connection->rule = rule;
    connection->state = RESOLVING;
    (void) uv_poll_stop(&connection->inner_poll);
    (void) uv_timer_start(&connection->timer, time_is_up, CONNECT_MS, 0);
    if (connection->is_direct) {
        addresses_came(connection, connection->addresses, 1);
        return;
    }
    const struct egress_endpoint *endpoint = rules_endpoint(&channel->rules, rule);
    struct lookup *lookup =
        resolver_ask(channel->egress->resolver, endpoint ? endpoint->host : connection->record.name,
                     addresses_came, connection);
    if (lookup)
        connection->lookup = lookup;
}

/* --- deciding ------------------------------------------------------------------------------------
 */

static void set_name(struct connection *connection, const char *name, uint16_t port)
{
    struct egress_record *record = &connection->record;
    memset(record->name, 0, sizeof record->name);
    (void) memcpy(record->name, name, strnlen(name, sizeof record->name - 1));
    record->port = port;
}

static void read_hello(struct connection *connection)
{
    char name[HOST_NAME_SIZE];
    connection->speech = SPEAKS_TLS;
    connection->record.is_tls = 1;
    switch (client_hello_read(connection->head, connection->head_size, name)) {
    case HELLO_MORE:
        if (connection->head_size >= CLIENT_HELLO_MOST)
            refuse(connection, EGRESS_NO_TLS);
        return;
    case HELLO_NO_TLS:
        connection->record.is_tls = 0;
        refuse(connection, EGRESS_NO_TLS);
        return;
    case HELLO_NO_NAME:
        refuse(connection, EGRESS_NO_SNI);
        return;
    case HELLO_NAMED:
        break;
    }
    if (strcmp(name, connection->record.name) != 0)
        refuse(connection, EGRESS_SNI_DIFFERS);
    else
        go_out(connection, connection->rule);
}

static void await_hello(struct connection *connection, const struct egress_rule *rule)
{
    connection->rule = rule;
    connection->state = IN_HELLO;
    connection->speech = SPEAKS_TLS;
    (void) uv_timer_start(&connection->timer, time_is_up, HEAD_MS, 0);
    (void) uv_poll_start(&connection->inner_poll, UV_READABLE, inner_is_ready);
    if (connection->head_size > 0)
        read_hello(connection);
}

static void note_request(struct connection *connection, const struct http_head *head)
{
    struct egress_record *record = &connection->record;
    size_t path = head->path.size;
    const char *query = memchr(head->path.at, '?', path);
    if (query)
        path = (size_t) (query - head->path.at); /* what is asked may hold secrets */
    if (path >= sizeof record->path)
        path = sizeof record->path - 1;
    memcpy(record->method, head->method.at, head->method.size);
    memcpy(record->path, head->path.at, path);
}

/* CONNECT host:port: then the connection is as one to that host. */
static void open_tunnel(struct connection *connection, const struct http_head *head)
{
    static const char yes[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    struct decision decision =
        rules_for_stream(&connection->channel->rules, head->name, head->port);
    connection->record.way = EGRESS_BY_CONNECT;
    if (head->is_literal)
        decision = (struct decision){ NULL, EGRESS_LITERAL };
    if (!decision.rule) {
        refuse(connection, decision.reason);
        return;
    }
    memmove(connection->head, connection->head + head->size, connection->head_size - head->size);
    connection->head_size -= head->size;
    if (send(connection->inner, yes, sizeof yes - 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        connection_end(connection, EGRESS_UNREACHABLE);
    else if (head->port == PORT_TLS)
        await_hello(connection, decision.rule);
    else if (rules_mean_http(&connection->channel->rules, head->port)) {
        connection->in_tunnel =
            true; /* or its Host could be any, which it cannot without CONNECT */
        (void) uv_timer_start(&connection->timer, time_is_up, HEAD_MS, 0);
    } else {
        connection->speech = SPEAKS_NOTHING_WE_KNOW;
        go_out(connection, decision.rule);
    }
}

/* The request goes on as it was understood; of its body what the head announces, and no byte after
 * it.
 */
static void send_request(struct connection *connection, const struct http_head *head,
                         const struct egress_rule *rule)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    unsigned char *fresh = malloc(HEAD_ROOM + HTTP_HEAD_MOST);
    size_t size = fresh ? http_head_write(head, (char *) fresh, HEAD_ROOM) : 0;
    if (size == 0) {
        free(fresh);
        refuse(connection, EGRESS_TOO_LARGE);
        return;
    }
    size_t body = connection->head_size - head->size;
    connection->is_http = true;
    connection->up.body = head->is_chunked ? FLOW_CHUNKED : FLOW_COUNTED;
    connection->up.left = head->has_length ? head->length : 0;
    if (connection->up.body == FLOW_COUNTED && body > connection->up.left)
        body = (size_t) connection->up.left;
    memcpy(fresh + size, connection->head + head->size, body);
    free(connection->head);
    connection->head = fresh;
    connection->head_size = size + body;
    connection->body_from = size;
    if (head->expects_continue)
        (void) !send(connection->inner, go_on, sizeof go_on - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    go_out(connection, rule);
}

static void decide_request(struct connection *connection, const struct http_head *head)
{
    bool is_proxy = connection->record.way != EGRESS_BY_NAME && !connection->in_tunnel;
    note_request(connection, head);
    if (!is_proxy && (strcmp(head->name, connection->record.name) != 0 ||
                      head->port != connection->record.port)) {
        refuse(connection, EGRESS_HOST_DIFFERS);
        return;
    }
    set_name(connection, head->name, head->port);
    if (head->target == HTTP_AUTHORITY) {
        if (is_proxy)
            open_tunnel(connection, head);
        else
            refuse(connection, EGRESS_BAD_REQUEST);
        return;
    }
    if (is_proxy && head->target != HTTP_ABSOLUTE) {
        refuse(connection, EGRESS_BAD_REQUEST);
        return;
    }
    struct decision decision = rules_for_request(&connection->channel->rules, head);
    if (head->is_literal)
        decision = (struct decision){ NULL, EGRESS_LITERAL };
    if (decision.rule)
        send_request(connection, head, decision.rule);
    else
        refuse(connection, decision.reason);
}

/* Returns true if what follows is another head: that of a request inside a tunnel. */
static bool take_request(struct connection *connection)
{
    struct http_head head;
    enum egress_reason reason;
    bool was_in_tunnel = connection->in_tunnel;
    bool is_proxy = connection->record.way != EGRESS_BY_NAME && !was_in_tunnel;
    switch (http_head_read((const char *) connection->head, connection->head_size,
                           is_proxy ? 80 : connection->record.port, &head, &reason)) {
    case HTTP_MORE:
        break;
    case HTTP_BAD:
        refuse(connection, reason);
        break;
    case HTTP_WHOLE:
        decide_request(connection, &head);
        break;
    }
    return connection->in_tunnel != was_in_tunnel && connection->head_size > 0;
}

static void read_request(struct connection *connection)
{
    while (take_request(connection))
        ;
}

/* DNS by TCP: one question, its length in front (RFC 1035 section 4.2.2). */
static void read_question(struct connection *connection)
{
    unsigned char answer[2 + DNS_ANSWER_MOST];
    const unsigned char *head = connection->head;
    size_t size = connection->head_size < 2 ? 0 : (size_t) head[0] << 8 | head[1];
    if (connection->head_size < 2 ||
        (size <= DNS_QUESTION_MOST && connection->head_size < size + 2))
        return;
    size_t answered = size <= DNS_QUESTION_MOST
                          ? lookup_answer(connection->channel, head + 2, size, answer + 2)
                          : 0;
    answer[0] = (unsigned char) (answered >> 8);
    answer[1] = (unsigned char) answered;
    if (answered > 0)
        (void) !send(connection->inner, answer, answered + 2, MSG_NOSIGNAL | MSG_DONTWAIT);
    linger(connection);
}

/* --- the loop's calls ----------------------------------------------------------------------------
 */

/* What came is thrown away; the end is the end. */
static void drain(struct connection *connection)
{
    char nothing[4096];
    for (unsigned i = 0; i < 16; i++) {
        ssize_t got = recv(connection->inner, nothing, sizeof nothing, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0) {
            connection_end(connection, EGRESS_ALLOWED);
            return;
        }
    }
}

static void read_head(struct connection *connection)
{
    size_t room = HTTP_HEAD_MOST - connection->head_size;
    ssize_t got =
        recv(connection->inner, connection->head + connection->head_size, room, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        connection_end(connection, EGRESS_BAD_REQUEST);
        return;
    }
    connection->head_size += (size_t) got;
    if (connection->state == IN_REQUEST)
        read_request(connection);
    else if (connection->state == IN_HELLO)
        read_hello(connection);
    else
        read_question(connection);
}

static void inner_is_ready(uv_poll_t *poll, int status, int events)
{
    struct connection *connection = poll->data;
    if (connection->state == OVER)
        return;
    (void) events;
    if (status < 0)
        connection_end(connection, EGRESS_ALLOWED);
    else if (connection->state == RELAYING)
        relay(connection);
    else if (connection->state == LINGERING)
        drain(connection);
    else if (connection->state <= IN_QUESTION)
        read_head(connection);
}

static void time_is_up(uv_timer_t *timer)
{
    struct connection *connection = timer->data;
    if (connection->state == CONNECTING) {
        drop_outer(connection);
        connect_next(connection);
    } else if (connection->state == RESOLVING) {
        resolver_forget(connection->lookup);
        connection->lookup = NULL;
        refuse(connection, EGRESS_NOT_FOUND);
    } else if (connection->state == RELAYING)
        connection_end(connection, EGRESS_TOO_LONG);
    else if (connection->state == IN_REQUEST || connection->state == IN_HELLO)
        refuse(connection, EGRESS_TOO_SLOW);
    else
        connection_end(connection, EGRESS_TOO_SLOW);
}

/* --- the beginning -------------------------------------------------------------------------------
 */

/* Straight to a name that was looked up, or to a number. */
static void begin_transparent(struct connection *connection, const struct in6_addr *to,
                              uint16_t port)
{
    const struct rules *rules = &connection->channel->rules;
    const char *name = given_names_find(&connection->channel->names, to);
    char text[ADDRESS_TEXT];
    bool is_http = rules_mean_http(rules, port);
    connection->speech = is_http            ? SPEAKS_HTTP
                         : port == PORT_TLS ? SPEAKS_TLS
                                            : SPEAKS_NOTHING_WE_KNOW;
    address_write(to, text);
    set_name(connection, name ? name : text, port);
    if (!name) {
        struct decision decision = rules_for_address(rules, to, port);
        if (!decision.rule) {
            refuse(connection, decision.reason);
            return;
        }
        connection->is_direct = true;
        connection->addresses[0] = *to;
        go_out(connection, decision.rule);
        return;
    }
    if (is_http) {
        connection->state = IN_REQUEST;
        return;
    }
    struct decision decision = rules_for_stream(rules, name, port);
    if (!decision.rule)
        refuse(connection, decision.reason);
    else if (port == PORT_TLS)
        await_hello(connection, decision.rule);
    else
        go_out(connection, decision.rule);
}

static void begin(struct connection *connection, const struct listener *listener)
{
    struct sockaddr_storage local = { 0 };
    socklen_t size = sizeof local;
    struct in6_addr to = IN6ADDR_ANY_INIT;
    if (getsockname(connection->inner, (struct sockaddr *) &local, &size) < 0) {
        connection_end(connection, EGRESS_BAD_REQUEST);
        return;
    }
    if (local.ss_family == AF_INET6) {
        struct sockaddr_in6 six;
        memcpy(&six, &local, sizeof six);
        to = six.sin6_addr;
    } else {
        struct sockaddr_in four;
        memcpy(&four, &local, sizeof four);
        address_map(&four.sin_addr, &to);
    }
    if (listener->kind == EGRESS_LISTEN_DNS_TCP)
        connection->state = IN_QUESTION;
    else if (listener->kind == EGRESS_LISTEN_PROXY) {
        connection->state = IN_REQUEST;
        connection->speech = SPEAKS_HTTP;
        connection->record.way = EGRESS_BY_PROXY;
    } else
        begin_transparent(connection, &to, listener->port);
}

static struct connection *make(struct channel *channel, int socket)
{
    struct connection *connection = calloc(1, sizeof *connection);
    unsigned char *head = connection ? malloc(HTTP_HEAD_MOST) : NULL;
    if (!head || uv_poll_init(&channel->egress->loop, &connection->inner_poll, socket) < 0) {
        free(head);
        free(connection);
        return NULL;
    }
    (void) uv_timer_init(&channel->egress->loop, &connection->timer);
    connection->channel = channel;
    connection->inner = socket;
    connection->head = head;
    connection->handles = 2;
    connection->inner_poll.data = connection->timer.data = connection;
    connection->up.pipe[0] = connection->up.pipe[1] = -1;
    connection->down.pipe[0] = connection->down.pipe[1] = -1;
    connection->began_us = uv_hrtime() / 1000;
    connection->record = (struct egress_record){ .channel = channel->id,
                                                 .way = EGRESS_BY_NAME,
                                                 .began_ms = (uint64_t) wall_clock_ms() };
    connection->next = channel->first;
    connection->place = &channel->first;
    if (channel->first)
        channel->first->place = &connection->next;
    channel->first = connection;
    channel->connections++;
    channel->egress->connections++;
    channel->open_handles++;
    return connection;
}

/* The last quarter of all connections is for those who have few: nobody uses up everybody's. */
static bool has_room(const struct channel *channel)
{
    const struct egress *egress = channel->egress;
    unsigned reserve = channel->connections < FEW ? 0 : egress->connections_most / 4;
    return channel->connections < channel->terms.connections_most + LINGERING_MOST &&
           egress->connections + reserve < egress->connections_most;
}

void connection_accept(struct listener *listener)
{
    struct channel *channel = listener->channel;
    int one = 1;
    for (unsigned i = 0; i < 16; i++) {
        int accepted = accept4(listener->socket, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (accepted < 0)
            return;
        (void) setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        flow_keeps_to_host(accepted);
        struct connection *connection = has_room(channel) ? make(channel, accepted) : NULL;
        if (!connection) {
            (void) close(accepted);
            channel->lost++;
            continue;
        }
        (void) uv_timer_start(&connection->timer, time_is_up, HEAD_MS, 0);
        (void) uv_poll_start(&connection->inner_poll, UV_READABLE, inner_is_ready);
        if (channel->connections > channel->terms.connections_most) {
            connection->record.port = listener->port;
            refuse(connection, EGRESS_TOO_MANY);
        } else
            begin(connection, listener);
    }
}
