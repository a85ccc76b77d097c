/* channel.c - opens and closes the egress of one sandbox. */
#include "egress/connection.h"

#include "base/list.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct channel *channel_find(struct egress *egress, uint32_t id)
{
    struct channel *channel = egress->channels;
    while (channel && channel->id != id)
        channel = channel->next;
    return channel;
}

static void listener_is_ready(uv_poll_t *poll, int status, int events)
{
    (void) events;
    struct listener *listener = poll->data;
    if (status < 0 || listener->channel->is_closing)
        return;
    if (listener->kind == EGRESS_LISTEN_DNS_UDP)
        lookup_by_udp(listener);
    else
        connection_accept(listener);
}

static enum egress_listener kind_of(unsigned index)
{
    return index < EGRESS_LISTEN_PORT ? (enum egress_listener) index : EGRESS_LISTEN_PORT;
}

static uint16_t port_of(const struct egress_open *terms, unsigned index)
{
    static const uint16_t fixed[] = { EGRESS_DNS_PORT, EGRESS_DNS_PORT, EGRESS_PROXY_PORT };
    return index < EGRESS_LISTEN_PORT ? fixed[index] : terms->ports[index - EGRESS_LISTEN_PORT];
}

static int listen_at(struct channel *channel, unsigned index, int socket, error *err)
{
    struct listener *listener = &channel->listeners[index];
    *listener = (struct listener){ .channel = channel,
                                   .kind = kind_of(index),
                                   .port = port_of(&channel->terms, index),
                                   .socket = socket };
    listener->poll.data = listener;
    if (fcntl(socket, F_SETFL, O_NONBLOCK) < 0 ||
        uv_poll_init(&channel->egress->loop, &listener->poll, socket) < 0) {
        (void) close(socket);
        return fail(err, ERR_SYSTEM, "watch listening socket %u of a channel", index);
    }
    channel->listener_count++;
    channel->open_handles++;
    if (uv_poll_start(&listener->poll, UV_READABLE, listener_is_ready) < 0)
        return fail(err, ERR_SYSTEM, "watch listening socket %u of a channel", index);
    return 0;
}

static bool intercepts(const struct rules *rules)
{
    for (uint32_t i = 0; i < rules->count; i++)
        if (rules->list[i].flags & EGRESS_INTERCEPTED)
            return true;
    return false;
}

static struct channel *make_channel(struct egress *egress, const struct egress_open *terms,
                                    const struct rules *rules)
{
    struct channel *channel = calloc(1, sizeof *channel);
    if (!channel)
        return NULL;
    channel->egress = egress;
    channel->id = terms->channel;
    channel->terms = *terms;
    channel->rules = *rules;
    channel->next = egress->channels;
    egress->channels = channel;
    return channel;
}

struct channel *channel_open(struct egress *egress, const struct egress_open *terms,
                             const struct rules *rules, const int *sockets, error *err)
{
    unsigned count = EGRESS_LISTEN_PORT + terms->port_count, next = 0;
    struct channel *channel = make_channel(egress, terms, rules);
    if (!channel)
        (void) fail(err, ERR_SYSTEM, "no memory for a channel");
    int done = channel ? 0 : -1;
    if (done == 0 && intercepts(rules))
        done = tls_authority_new(rules, terms->life_s, &channel->authority, err);
    for (; channel && done == 0 && next < count; next++)
        done = listen_at(channel, next, sockets[next], err);
    for (; next < count; next++)
        (void) close(sockets[next]);
    if (done == 0 && channel->authority)
        link_tell_authority(channel);
    return done == 0 ? channel : NULL; /* if it failed, the program ends, and frees the rest */
}

static void free_channel(struct channel *channel)
{
    (void) list_remove(channel->egress->channels, channel, next);
    fake_addresses_free(&channel->names);
    tls_authority_free(channel->authority);
    link_tell_closed(channel);
    free(channel);
}

void channel_handle_closed(struct channel *channel)
{
    if (--channel->open_handles == 0 && channel->is_closing)
        free_channel(channel);
}

static void listener_closed(uv_handle_t *handle)
{
    struct listener *listener = handle->data;
    (void) close(listener->socket);
    channel_handle_closed(listener->channel);
}

/* A program may refuse the certificate and end the run before this loop reads its alert. */
static enum egress_reason why_it_ends(const struct connection *connection)
{
    return connection->tls_intercept && tls_intercept_is_refused(connection->tls_intercept)
               ? EGRESS_NOT_BELIEVED
               : EGRESS_ENDED;
}

void channel_close(struct channel *channel)
{
    if (channel->is_closing)
        return;
    channel->is_closing = true;
    while (channel->first)
        connection_end(channel->first, why_it_ends(channel->first));
    for (unsigned i = 0; i < channel->listener_count; i++)
        uv_close((uv_handle_t *) &channel->listeners[i].poll, listener_closed);
}
