/* ports.c - connections to servers on the sandbox's own loopback: init connects, as any program
 * inside could, and copies bytes between the socket and gloveboxd. Both directions use credit, so
 * that a side that does not read blocks only its own connection. */
#include "init/operations.h"

#include "base/cleanup.h"
#include "base/table.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 24 };

struct connection {
    bool is_taken, stands;
    bool tried_both; /* 127.0.0.1 and ::1 */
    bool input_ends; /* gloveboxd sends no more for it */
    bool input_ended, output_ended;
    uint16_t port;
    uint32_t waiting;
    char pending[AGENT_WINDOW];
};

static struct connection connections[CONNECTIONS_MAX];

static void close_connection(struct operation *operation)
{
    struct connection *connection = operation->room;
    connection->is_taken = false;
}

static int connect_to(uint16_t port, bool is_v6, int *ret_socket)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET,
                              .sin_port = htons(port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
                               .sin6_port = htons(port),
                               .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    int yes = 1;
    auto_fd fd = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    int done = is_v6 ? connect(fd, (struct sockaddr *) &v6, sizeof v6)
                     : connect(fd, (struct sockaddr *) &v4, sizeof v4);
    if (done < 0 && errno != EINPROGRESS)
        return -1;
    *ret_socket = take_fd(&fd);
    return 0;
}

static short connection_wants(const struct operation *operation)
{
    const struct connection *connection = operation->room;
    if (!connection->stands)
        return POLLOUT;
    short wanted = connection->waiting > 0 ? POLLOUT : 0;
    if (!connection->output_ended && operation->credit > 0)
        wanted |= POLLIN;
    return wanted;
}

static int finish_connecting(struct sandbox *sandbox, struct operation *operation, error *err)
{
    struct connection *connection = operation->room;
    int cause = 0;
    socklen_t size = sizeof cause;
    if (getsockopt(operation->fd, SOL_SOCKET, SO_ERROR, &cause, &size) < 0)
        cause = errno;
    if (cause != 0 && !connection->tried_both) {
        connection->tried_both = true;
        (void) close(operation->fd);
        operation->fd = -1;
        if (connect_to(connection->port, true, &operation->fd) == 0)
            return OPERATION_GOES_ON;
    }
    if (cause != 0) {
        errno = cause;
        return fail_os(err, "connect to port %u", connection->port);
    }
    connection->stands = true;
    send_frame(sandbox, AGENT_OPENED, 0, operation->id, NULL, 0, NULL, 0);
    return OPERATION_GOES_ON;
}

static int end_both(const struct connection *connection)
{
    return connection->input_ended && connection->output_ended ? OPERATION_ENDS : OPERATION_GOES_ON;
}

static int flush(struct sandbox *sandbox, struct operation *operation, error *err)
{
    struct connection *connection = operation->room;
    if (connection->waiting > 0) {
        ssize_t sent = send(operation->fd, connection->pending, connection->waiting,
                            MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            return fail_os(err, "send to port %u", connection->port);
        if (sent > 0) {
            struct agent_amount taken = { .bytes = (uint64_t) sent };
            connection->waiting -= (uint32_t) sent;
            memmove(connection->pending, connection->pending + sent, connection->waiting);
            send_frame(sandbox, AGENT_CREDIT, 0, operation->id, &taken, sizeof taken, NULL, 0);
        }
    }
    if (connection->waiting == 0 && connection->input_ends && !connection->input_ended) {
        connection->input_ended = true;
        (void) shutdown(operation->fd, SHUT_WR);
    }
    return end_both(connection);
}

static int receive(struct sandbox *sandbox, struct operation *operation, error *err)
{
    static char block[AGENT_PAYLOAD_MAX];
    struct connection *connection = operation->room;
    size_t max = operation->credit < sizeof block ? (size_t) operation->credit : sizeof block;
    ssize_t got = recv(operation->fd, block, max, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return OPERATION_GOES_ON;
    if (got < 0)
        return fail_os(err, "receive from port %u", connection->port);
    if (got > 0) {
        operation_send(sandbox, operation, AGENT_DATA, block, (size_t) got);
        return OPERATION_GOES_ON;
    }
    connection->output_ended = true;
    operation_send(sandbox, operation, AGENT_END, NULL, 0);
    return end_both(connection);
}

static int connection_ready(struct sandbox *sandbox, struct operation *operation, short events,
                            error *err)
{
    struct connection *connection = operation->room;
    if (!connection->stands)
        return finish_connecting(sandbox, operation, err);
    int how = OPERATION_GOES_ON;
    if ((events & (POLLIN | POLLHUP | POLLERR)) && !connection->output_ended &&
        operation->credit > 0)
        how = receive(sandbox, operation, err);
    if (how == OPERATION_GOES_ON && (events & (POLLOUT | POLLERR)))
        how = flush(sandbox, operation, err);
    return how;
}

static int connection_data(struct sandbox *sandbox, struct operation *operation, const void *bytes,
                           size_t size, error *err)
{
    struct connection *connection = operation->room;
    if (connection->input_ends || size > sizeof connection->pending - connection->waiting)
        return fail(err, ERR_PROTOCOL, "more bytes for a connection than were granted");
    memcpy(connection->pending + connection->waiting, bytes, size);
    connection->waiting += (uint32_t) size;
    return connection->stands ? flush(sandbox, operation, err) : OPERATION_GOES_ON;
}

static int connection_end(struct sandbox *sandbox, struct operation *operation, error *err)
{
    struct connection *connection = operation->room;
    connection->input_ends = true;
    return connection->stands ? flush(sandbox, operation, err) : OPERATION_GOES_ON;
}

static const struct operation_kind connecting = {
    .data = connection_data,
    .end = connection_end,
    .wants = connection_wants,
    .ready = connection_ready,
    .close = close_connection,
};

static struct connection *take_connection(uint16_t port)
{
    for_each(connection, connections) {
        if (connection->is_taken)
            continue;
        memset(connection, 0, offsetof(struct connection, pending));
        connection->is_taken = true;
        connection->port = port;
        return connection;
    }
    return NULL;
}

int begin_connect(struct sandbox *sandbox, const struct frame *in, error *err)
{
    struct agent_connect order;
    struct operation *operation;
    memcpy(&order, in->payload, sizeof order);
    /* Without network the filter refuses connect(2), and init would wait for its own answer. */
    if (sandbox->spec.network != SPAWN_NETWORK_LOOPBACK) {
        errno = ENETUNREACH;
        return fail_os(err, "connect to port %u", order.port);
    }
    auto_fd fd = -1;
    bool is_v6 = connect_to(order.port, false, &fd) < 0;
    if (order.port == 0 || (is_v6 && connect_to(order.port, true, &fd) < 0))
        return fail_os(err, "connect to port %u", order.port);
    struct connection *connection = take_connection(order.port);
    if (!connection) {
        errno = EAGAIN;
        return fail_os(err, "%d connections are open already", CONNECTIONS_MAX);
    }
    connection->tried_both = is_v6;
    if (operation_begin(in->head.id, &connecting, &operation, err) < 0) {
        connection->is_taken = false;
        return -1;
    }
    operation->room = connection;
    operation->fd = take_fd(&fd);
    operation->credit = order.credit;
    return 0;
}
