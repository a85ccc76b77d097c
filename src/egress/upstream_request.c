/* upstream_request.c - the beginning and the end of an exchange, and its callbacks of the event
 * loop.
 *
 * A header that code has sent under a secret's name is replaced by the secret. Redirects are passed
 * to code (within the upstream with the endpoint's own name), and secrets are removed from answers.
 * At most one piece of the answer is held: more is read when that was passed on. */
#include "egress/upstream_request.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void socket_is_ready(uv_poll_t *poll, int status, int events);

void exchange_watch(struct exchange *exchange)
{
    bool reads = !exchange->easy || exchange->waits_for_body;
    bool writes = exchange->out_from < exchange->out_size;
    int events = exchange->is_ended ? 0 : (reads ? UV_READABLE : 0) | (writes ? UV_WRITABLE : 0);
    if (events)
        (void) uv_poll_start(&exchange->poll, events, socket_is_ready);
    else
        (void) uv_poll_stop(&exchange->poll);
}

/* The connection sees the end of its socket, asks for the reason, and drops the exchange. */
void exchange_end(struct exchange *exchange, enum egress_reason failure)
{
    if (exchange->is_ended)
        return;
    exchange->is_ended = true;
    exchange->failure = failure;
    (void) shutdown(exchange->socket, SHUT_WR);
    exchange_watch(exchange);
}

static void read_head(struct exchange *exchange)
{
    enum http_fault fault;
    ssize_t got = recv(exchange->socket, exchange->in + exchange->in_size,
                       sizeof exchange->in - exchange->in_size, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    exchange->in_size += got > 0 ? (size_t) got : 0;
    switch (http_head_read(exchange->in, exchange->in_size, 80, &exchange->head, &fault)) {
    case HTTP_MORE:
        if (got > 0)
            return;
        break;
    case HTTP_BAD:
        break;
    case HTTP_WHOLE:
        exchange->in_from = exchange->head.size;
        if (exchange_send_request(exchange) == 0)
            return;
        break;
    }
    exchange_end(exchange, EGRESS_BAD_REQUEST);
}

static void socket_is_ready(uv_poll_t *poll, int status, int events)
{
    struct exchange *exchange = poll->data;
    if (status < 0) {
        exchange_end(exchange, EGRESS_BROKEN_OFF);
        return;
    }
    if (!exchange->easy) {
        read_head(exchange);
        exchange_watch(exchange);
        return;
    }
    bool was_paused = exchange->waits_for_body || exchange->waits_for_room;
    if (events & UV_READABLE)
        exchange->waits_for_body = false;
    if (events & UV_WRITABLE)
        exchange_flush(exchange);
    if (exchange->out_size == 0)
        exchange->waits_for_room = false;
    if (exchange->is_over)
        exchange_finish(exchange);
    else if (was_paused && !exchange->is_ended)
        (void) curl_easy_pause(exchange->easy, (exchange->waits_for_body ? CURLPAUSE_SEND : 0) |
                                                   (exchange->waits_for_room ? CURLPAUSE_RECV : 0));
    exchange_watch(exchange);
}

/* So that no sandbox can use up all exchanges: docs/decisions/0063. */
static bool has_room(const struct upstreams *upstreams, unsigned of_channel)
{
    unsigned max = of_channel < EXCHANGES_FEW ? EXCHANGES_MAX : EXCHANGES_MANY;
    return upstreams->exchanges < max;
}

enum egress_reason exchange_begin(struct upstreams *upstreams, const struct exchange_order *order,
                                  int *ret_socket, struct exchange **ret_exchange)
{
    int pair[2];
    const struct egress_endpoint *endpoint = order->endpoint;
    const struct secret *secret = secrets_find(upstreams->secrets, endpoint);
    if (!secret && endpoint->header_count > 0)
        return EGRESS_NO_SECRET;
    if (!rate_allows(endpoint, now_ms()))
        return EGRESS_TOO_OFTEN;
    struct exchange *exchange =
        has_room(upstreams, *order->of_channel) ? calloc(1, sizeof *exchange) : NULL;
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
    redact_init(&exchange->redact, exchange->secret ? secret->words : NULL,
                exchange->secret ? secret->word_count : 0);
    exchange->of_channel = order->of_channel;
    upstreams->exchanges++;
    (*order->of_channel)++;
    exchange_watch(exchange);
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
    return exchange->scrubbed + exchange->redact.found;
}

void exchange_address(const struct exchange *exchange, uint8_t ret_address[16])
{
    const char *text = NULL;
    char word[INET6_ADDRSTRLEN + 8];
    struct in6_addr address;
    if (!exchange->easy ||
        curl_easy_getinfo(exchange->easy, CURLINFO_PRIMARY_IP, &text) != CURLE_OK || !text)
        return;
    (void) snprintf(word, sizeof word, "%s%s", strchr(text, ':') ? "" : "::ffff:", text);
    if (inet_pton(AF_INET6, word, &address) == 1)
        memcpy(ret_address, &address, sizeof address);
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
    (*exchange->of_channel)--;
    transfer_free(exchange->upstreams->transfers, exchange->easy);
    curl_slist_free_all(exchange->fields);
    curl_slist_free_all(exchange->resolved);
    uv_close((uv_handle_t *) &exchange->poll, poll_closed);
}

int upstreams_open(uv_loop_t *loop, const struct secrets *secrets, int ca_file,
                   struct upstreams **ret_upstreams, error *err)
{
    static struct upstreams upstreams;
    if (transfers_open(loop, ca_file, exchange_ended, &upstreams.transfers, err) < 0)
        return -1;
    upstreams.loop = loop;
    upstreams.secrets = secrets;
    *ret_upstreams = &upstreams;
    return 0;
}
