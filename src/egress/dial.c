/* dial.c - opens an allowed connection: looks up the addresses of its host, checks them, and
 * connects to one of the checked addresses. */
#include "egress/connection.h"

#include "base/hosts_file.h"
#include "policy/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECT_MS = 10000 /* for each address */ };

static void outer_closed(uv_handle_t *handle)
{
    struct outer *outer = handle->data;
    (void) close(outer->socket);
    free(outer);
}

void connection_drop_outer(struct connection *connection)
{
    if (!connection->outer)
        return;
    connection->outer->connection = NULL;
    exchange_drop(connection->outer->exchange);
    uv_close((uv_handle_t *) &connection->outer->poll, outer_closed);
    connection->outer = NULL;
}

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

void connection_outer_is_ready(uv_poll_t *poll, int status, int events)
{
    struct outer *outer = poll->data;
    struct connection *connection = outer->connection;
    int cause = status < 0 ? ECONNREFUSED : 0;
    socklen_t size = sizeof cause;
    (void) events;
    if (!connection)
        return;
    if (connection->state == RELAYING) {
        connection_relay(connection);
        return;
    }
    if (status == 0 && getsockopt(outer->socket, SOL_SOCKET, SO_ERROR, &cause, &size) < 0)
        cause = errno;
    if (cause != 0) {
        connection_drop_outer(connection);
        connection_dial_next(connection);
        return;
    }
    connection_begin_relay(connection);
}

/* Begins to watch the outer socket. Takes: `socket`. */
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

/* Returns 0 if the attempt has begun. */
static int connect_to(struct connection *connection, const struct in6_addr *address)
{
    struct sockaddr_storage to;
    socklen_t size = fill_address(address, connection->record.port, &to);
    int one = 1, made = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (made < 0)
        return -1;
    (void) setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (address_is_loopback(address))
        splice_keeps_to_host(made);
    if (connect(made, (struct sockaddr *) &to, size) < 0 && errno != EINPROGRESS) {
        (void) close(made);
        return -1;
    }
    if (add_outer(connection, made) < 0)
        return -1;
    memcpy(connection->record.address, address, sizeof *address);
    return uv_poll_start(&connection->outer->poll, UV_WRITABLE, connection_outer_is_ready);
}

/* libcurl connects to the endpoint; the outer socket leads to it, instead of to a host. */
static void reach_endpoint(struct connection *connection, const struct egress_endpoint *endpoint)
{
    const struct exchange_order order = { endpoint, connection->addresses,
                                          connection->address_count,
                                          &connection->channel->exchanges };
    struct exchange *exchange;
    int made;
    enum egress_reason reason =
        exchange_begin(connection->channel->egress->upstreams, &order, &made, &exchange);
    if (reason == EGRESS_ALLOWED && add_outer(connection, made) < 0) {
        exchange_drop(exchange);
        reason = EGRESS_TOO_MANY;
    }
    if (reason != EGRESS_ALLOWED) {
        connection_refuse(connection, reason);
        return;
    }
    connection->outer->exchange = exchange;
    connection->record.is_tls = endpoint->is_tls != 0;
    memcpy(connection->record.address, &connection->addresses[0], sizeof connection->addresses[0]);
    connection_begin_relay(connection);
}

/* For intercepted TLS: connects to the host by TLS, as to an endpoint without name and secrets. */
static void reach_host(struct connection *connection)
{
    struct egress_endpoint host = { .port = connection->record.port, .is_tls = 1 };
    memcpy(host.host, connection->record.name, sizeof host.host);
    reach_endpoint(connection, &host);
}

void connection_dial_next(struct connection *connection)
{
    connection->state = CONNECTING;
    while (connection->address_next < connection->address_count) {
        (void) uv_timer_start(&connection->timer, connection_time_is_up, CONNECT_MS, 0);
        if (connect_to(connection, &connection->addresses[connection->address_next++]) == 0)
            return;
        connection_drop_outer(connection);
    }
    connection_refuse(connection, EGRESS_UNREACHABLE);
}

/* Special addresses and those of this host need a rule that allows their network by number. */
static bool may_be_looked_up(const struct egress_rule *rule, const struct in6_addr *address)
{
    bool is_by_number = rule->flags & (EGRESS_PRIVATE | EGRESS_NETWORK);
    return rule_accepts_address(rule, address) && (is_by_number || !address_is_own(address));
}

/* An address that the operator has set (base/hosts_file.h) only has to lie in the endpoint's
 * `network`. */
static bool may_be_stated(const struct egress_rule *rule, const struct in6_addr *address)
{
    return !(rule->flags & EGRESS_PRIVATE) || rule_accepts_address(rule, address);
}

typedef bool may_lead(const struct egress_rule *rule, const struct in6_addr *address);

/* Keeps the addresses that the rule allows, and connects to them. */
static void take_addresses(struct connection *connection, const struct in6_addr *addresses,
                           unsigned count, may_lead *may)
{
    const struct egress_rule *rule = connection->rule;
    unsigned kept = 0;
    for (unsigned i = 0; i < count && kept < ADDRESSES_MAX; i++)
        if (may(rule, &addresses[i]))
            connection->addresses[kept++] = addresses[i];
    connection->address_count = kept;
    const struct egress_endpoint *endpoint = rules_endpoint(&connection->channel->rules, rule);
    if (connection->address_count > 0 && connection->tls_intercept)
        reach_host(connection);
    else if (connection->address_count > 0 && endpoint)
        reach_endpoint(connection, endpoint);
    else if (connection->address_count > 0)
        connection_dial_next(connection);
    else
        connection_refuse(connection, count > 0 ? EGRESS_SPECIAL_ADDRESS : EGRESS_NOT_FOUND);
}

static void addresses_came(void *context, const struct in6_addr *addresses, unsigned count)
{
    struct connection *connection = context;
    connection->lookup = NULL;
    take_addresses(connection, addresses, count, may_be_looked_up);
}

/* The rule is known. Nothing more is read from the client until the outer connection is open. */
void connection_go_out(struct connection *connection, const struct egress_rule *rule)
{
    struct channel *channel = connection->channel;
    connection->rule = rule;
    connection->state = RESOLVING;
    (void) uv_poll_stop(connection->inner_poll);
    (void) uv_timer_start(&connection->timer, connection_time_is_up, CONNECT_MS, 0);
    if (connection->is_direct) {
        addresses_came(connection, connection->addresses, 1);
        return;
    }
    const struct egress_endpoint *endpoint = rules_endpoint(&channel->rules, rule);
    struct in6_addr stated[ADDRESSES_MAX];
    unsigned count = endpoint ? hosts_file_addresses(channel->egress->hosts, endpoint->host, stated,
                                                     ADDRESSES_MAX)
                              : 0;
    if (count > 0) {
        take_addresses(connection, stated, count, may_be_stated);
        return;
    }
    struct lookup *lookup =
        resolver_ask(channel->egress->resolver, endpoint ? endpoint->host : connection->record.name,
                     addresses_came, connection);
    if (lookup)
        connection->lookup = lookup;
}
