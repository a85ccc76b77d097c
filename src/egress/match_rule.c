/* match_rule.c - finds the rule that allows a connection: by its ClientHello, by one request of
 * plain HTTP, by CONNECT followed by either of them, or by its IP address. */
#include "egress/connection.h"

#include "base/host_name.h"
#include "egress/client_hello.h"
#include "egress/dns.h"
#include "policy/address.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    PORT_TLS = 443,
    HEAD_ROOM = HTTP_HEAD_MAX + 1024, /* a rewritten head gets another Host and Connection */
};

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
        if (connection->head_size >= CLIENT_HELLO_MAX)
            connection_refuse(connection, EGRESS_NO_TLS);
        return;
    case HELLO_NO_TLS:
        connection->record.is_tls = 0;
        connection_refuse(connection, EGRESS_NO_TLS);
        return;
    case HELLO_NO_NAME:
        connection_refuse(connection, EGRESS_NO_SNI);
        return;
    case HELLO_NAMED:
        break;
    }
    if (strcmp(name, connection->record.name) != 0)
        connection_refuse(connection, EGRESS_SNI_DIFFERS);
    else if (connection->rule->flags & EGRESS_INTERCEPTED)
        connection_intercept(connection);
    else
        connection_go_out(connection, connection->rule);
}

static void await_hello(struct connection *connection, const struct egress_rule *rule)
{
    connection->rule = rule;
    connection->state = IN_HELLO;
    connection->speech = SPEAKS_TLS;
    (void) uv_timer_start(&connection->timer, connection_time_is_up, HEAD_MS, 0);
    (void) uv_poll_start(connection->inner_poll, UV_READABLE, connection_inner_is_ready);
    if (connection->head_size > 0)
        read_hello(connection);
}

static void note_request(struct connection *connection, const struct http_head *head)
{
    struct egress_record *record = &connection->record;
    size_t path = head->path.size;
    const char *query = memchr(head->path.at, '?', path);
    if (query)
        path = (size_t) (query - head->path.at); /* the query may hold secrets */
    if (path >= sizeof record->path)
        path = sizeof record->path - 1;
    memset(record->method, 0, sizeof record->method); /* replaces the CONNECT of a tunnel */
    memset(record->path, 0, sizeof record->path);
    memcpy(record->method, head->method.at, head->method.size);
    memcpy(record->path, head->path.at, path);
}

/* CONNECT host:port: after the answer, the connection is one to that host. */
static void open_tunnel(struct connection *connection, const struct http_head *head)
{
    static const char yes[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    const struct rules *rules = &connection->channel->rules;
    const struct egress_rule *intercepted = rules_intercept(rules, head->name, head->port);
    struct decision decision = rules_for_connection(rules, head->name, head->port);
    connection->record.route = EGRESS_BY_CONNECT;
    if (head->is_literal) {
        connection_refuse(connection, EGRESS_LITERAL);
        return;
    }
    if (!decision.rule) {
        connection_refuse(connection, decision.reason);
        return;
    }
    memmove(connection->head, connection->head + head->size, connection->head_size - head->size);
    connection->head_size -= head->size;
    if (send(connection->inner, yes, sizeof yes - 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        connection_end(connection, EGRESS_UNREACHABLE);
    else if (head->port == PORT_TLS || intercepted)
        await_hello(connection, decision.rule);
    else if (rules_mean_http(rules, head->port)) {
        connection->in_tunnel = true; /* so that the Host of the request inside is compared */
        (void) uv_timer_start(&connection->timer, connection_time_is_up, HEAD_MS, 0);
    } else {
        connection->speech = SPEAKS_NOTHING_WE_KNOW;
        connection_go_out(connection, decision.rule);
    }
}

/* Was the request sent to the proxy, with its destination in it? Others have one already. */
static bool is_for_a_proxy(const struct connection *connection)
{
    return connection->record.route != EGRESS_BY_NAME && !connection->in_tunnel &&
           !connection->tls_intercept;
}

/* Writes the request anew from its parsed form, with as much of the body as the head announces. */
static void send_request(struct connection *connection, const struct http_head *head,
                         const struct egress_rule *rule)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    unsigned char *fresh = malloc(HEAD_ROOM + HTTP_HEAD_MAX);
    size_t size = fresh ? http_head_write(head, (char *) fresh, HEAD_ROOM) : 0;
    if (size == 0) {
        free(fresh);
        connection_refuse(connection, EGRESS_TOO_LARGE);
        return;
    }
    size_t body = connection->head_size - head->size;
    connection->is_http = true;
    connection->up.body = head->is_chunked ? SPLICE_CHUNKED : SPLICE_COUNTED;
    connection->up.left = head->has_length ? head->length : 0;
    if (connection->up.body == SPLICE_COUNTED && body > connection->up.left)
        body = (size_t) connection->up.left;
    memcpy(fresh + size, connection->head + head->size, body);
    free(connection->head);
    connection->head = fresh;
    connection->head_size = size + body;
    connection->body_from = size;
    if (head->expects_continue)
        (void) !send(connection->inner, go_on, sizeof go_on - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    connection_go_out(connection, rule);
}

static void decide_request(struct connection *connection, const struct http_head *head)
{
    bool is_proxy = is_for_a_proxy(connection);
    connection->rule = NULL; /* the rule for interception does not yet allow the request */
    note_request(connection, head);
    if (!is_proxy && (strcmp(head->name, connection->record.name) != 0 ||
                      head->port != connection->record.port)) {
        connection_refuse(connection, EGRESS_HOST_DIFFERS);
        return;
    }
    set_name(connection, head->name, head->port);
    if (head->target == HTTP_AUTHORITY) {
        if (is_proxy)
            open_tunnel(connection, head);
        else
            connection_refuse(connection, EGRESS_BAD_REQUEST);
        return;
    }
    if (is_proxy && head->target != HTTP_ABSOLUTE) {
        connection_refuse(connection, EGRESS_BAD_REQUEST);
        return;
    }
    struct decision decision =
        rules_for_request(&connection->channel->rules, head, connection->tls_intercept != NULL);
    if (head->is_literal)
        connection_refuse(connection, EGRESS_LITERAL);
    else if (decision.rule)
        send_request(connection, head, decision.rule);
    else
        connection_refuse(connection, decision.reason);
}

_Static_assert((int) HTTP_METHOD_SIZE <= (int) EGRESS_METHOD_SIZE,
               "a record has room for the method");

/* Returns true if what follows is another head: that of a request inside a tunnel. */
static bool take_request(struct connection *connection)
{
    struct http_head head;
    static const enum egress_reason reasons[HTTP_FAULTS] = {
        [HTTP_MALFORMED] = EGRESS_BAD_REQUEST,     [HTTP_BAD_HOST] = EGRESS_BAD_NAME,
        [HTTP_HOST_DIFFERS] = EGRESS_HOST_DIFFERS, [HTTP_TOO_LARGE] = EGRESS_TOO_LARGE,
        [HTTP_UPGRADE] = EGRESS_UPGRADE,
    };
    enum http_fault fault;
    bool was_in_tunnel = connection->in_tunnel, is_proxy = is_for_a_proxy(connection);
    switch (http_head_read((const char *) connection->head, connection->head_size,
                           is_proxy ? 80 : connection->record.port, &head, &fault)) {
    case HTTP_MORE:
        break;
    case HTTP_BAD:
        connection_refuse(connection, reasons[fault]);
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
    unsigned char answer[2 + DNS_ANSWER_MAX];
    const unsigned char *head = connection->head;
    size_t size = connection->head_size < 2 ? 0 : (size_t) head[0] << 8 | head[1];
    if (connection->head_size < 2 || (size <= DNS_QUESTION_MAX && connection->head_size < size + 2))
        return;
    size_t answered = size <= DNS_QUESTION_MAX
                          ? lookup_answer(connection->channel, head + 2, size, answer + 2)
                          : 0;
    answer[0] = (unsigned char) (answered >> 8);
    answer[1] = (unsigned char) answered;
    if (answered > 0)
        (void) !send(connection->inner, answer, answered + 2, MSG_NOSIGNAL | MSG_DONTWAIT);
    connection_linger(connection);
}

/* A connection to the fake address of a name, or to a literal address. */
static void begin_transparent(struct connection *connection, const struct in6_addr *to,
                              uint16_t port)
{
    const struct rules *rules = &connection->channel->rules;
    const char *name = fake_addresses_find(&connection->channel->names, to);
    char text[ADDRESS_TEXT];
    const struct egress_rule *intercepted = name ? rules_intercept(rules, name, port) : NULL;
    bool is_http = !intercepted && rules_mean_http(rules, port);
    connection->speech = is_http                           ? SPEAKS_HTTP
                         : port == PORT_TLS || intercepted ? SPEAKS_TLS
                                                           : SPEAKS_NOTHING_WE_KNOW;
    address_write(to, text);
    set_name(connection, name ? name : text, port);
    if (!name) {
        struct decision decision = rules_for_address(rules, to, port);
        if (!decision.rule) {
            connection_refuse(connection, decision.reason);
            return;
        }
        connection->is_direct = true;
        connection->addresses[0] = *to;
        connection_go_out(connection, decision.rule);
        return;
    }
    if (is_http) {
        connection->state = IN_REQUEST;
        return;
    }
    struct decision decision = rules_for_connection(rules, name, port);
    if (!decision.rule)
        connection_refuse(connection, decision.reason);
    else if (port == PORT_TLS || intercepted)
        await_hello(connection, decision.rule);
    else
        connection_go_out(connection, decision.rule);
}

void connection_begin(struct connection *connection, const struct listener *listener)
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
        connection->record.route = EGRESS_BY_PROXY;
    } else
        begin_transparent(connection, &to, listener->port);
}

void connection_read(struct connection *connection)
{
    size_t room = HTTP_HEAD_MAX - connection->head_size;
    ssize_t got =
        recv(connection->inner, connection->head + connection->head_size, room, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        bool is_silent = connection->tls_intercept && connection->head_size == 0;
        connection_end(connection, is_silent ? tls_intercept_failure(connection->tls_intercept)
                                             : EGRESS_BAD_REQUEST);
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
