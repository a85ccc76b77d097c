/* refusal.c - answers a refusal in the protocol of the client, and waits until it has been read. */
#include "egress/connection.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

enum { LINGER_MS = 2000 };

void connection_go_on_lingering(struct connection *connection)
{
    (void) uv_timer_start(&connection->timer, connection_time_is_up, LINGER_MS, 0);
}

/* Lets the other side read the answer: close(2) with unread bytes would discard it. */
void connection_linger(struct connection *connection)
{
    connection->state = LINGERING;
    connection_drop_outer(connection);
    (void) shutdown(connection->inner, SHUT_WR);
    (void) uv_poll_start(connection->inner_poll, UV_READABLE | UV_DISCONNECT,
                         connection_inner_is_ready);
    connection_go_on_lingering(connection);
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
    unsigned status = reason_status(reason);
    int size =
        snprintf(body, sizeof body, "glovebox: %s:%u is refused: %s.%s%s\n",
                 record->name[0] ? record->name : "?", record->port, reason_text(reason),
                 status >= 500 ? ""
                               : " This is the policy of the sandbox and no fault of the network: "
                                 "do not try other ways.",
                 rule);
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
    /* alert, version, length 2: fatal, access_denied (RFC 8446 section 6.2) */
    static const unsigned char alert[] = { 21, 3, 3, 0, 2, 2, 49 };
    (void) !send(connection->inner, alert, sizeof alert, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void connection_refuse(struct connection *connection, enum egress_reason reason)
{
    connection_tell(connection, reason);
    if (connection->speech == SPEAKS_HTTP)
        say_in_http(connection, reason);
    else if (connection->speech == SPEAKS_TLS)
        say_in_tls(connection);
    connection_linger(connection);
}

/* Discards what the client still sends, until it closes. */
void connection_drain(struct connection *connection)
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
