/* notify_client.c - see notify_client.h. */
#include "engine/observe/notify_client.h"

#include "base/packet.h"
#include "contract/notify.h"
#include "engine/observe/log.h"
#include "engine/observe/loop_monitor.h"
#include "engine/observe/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PACKETS_A_TURN = 64,
    IN_FLIGHT_MAX = 512, /* more than glovebox-notify and its socket can hold */
};

struct notify_client {
    int socket;
    uv_poll_t poll;
    bool has_webhook;
    bool was_up;        /* a hello has come before */
    bool is_heard;      /* the present peer has sent a valid hello */
    bool has_warned;    /* about the present peer */
    unsigned in_flight; /* webhooks that were sent to it, without an outcome yet */
};

static struct notify_client *tracing; /* NULL: spans are dropped */

static const enum metric metric_of[NOTIFY_PLACES] = { [NOTIFY_WEBHOOK] = METRIC_WEBHOOKS,
                                                      [NOTIFY_WITNESS] = METRIC_WITNESS,
                                                      [NOTIFY_TRACES] = METRIC_TRACES };

static void note(const struct notify_outcome *outcome)
{
    static const enum log_event events[NOTIFY_PLACES][NOTIFY_ENDS] = {
        { LOGGED_WEBHOOK_DELIVERED, LOGGED_WEBHOOK_FAILED, LOGGED_WEBHOOK_GAVE_UP,
          LOGGED_WEBHOOK_DROPPED, LOGGED_WEBHOOK_LOST },
        { LOGGED_WITNESS_DELIVERED, LOGGED_WITNESS_FAILED, LOGGED_WITNESS_GAVE_UP,
          LOGGED_WITNESS_DROPPED, LOGGED_WITNESS_LOST },
        { LOGGED_TRACES_DELIVERED, LOGGED_TRACES_FAILED, LOGGED_TRACES_GAVE_UP,
          LOGGED_TRACES_DROPPED, LOGGED_TRACES_DROPPED },
    };
    enum log_event event = events[outcome->place][outcome->end];
    metric_add(metric_of[outcome->place], outcome->end,
               outcome->place == NOTIFY_TRACES ? outcome->spans : 1);
    log_fields(event, log_event_level(event),
               LOG_FIELDS(TEXT("id", outcome->id), COUNT("attempts", outcome->attempts),
                          COUNT("status", outcome->status), TEXT("cause", outcome->cause)));
}

static void note_ours(enum notify_place place, enum notify_end end, const char *id,
                      const char *cause)
{
    struct notify_outcome outcome = { .place = place, .end = end };
    (void) snprintf(outcome.id, sizeof outcome.id, "%s", id);
    (void) snprintf(outcome.cause, sizeof outcome.cause, "%s", cause);
    note(&outcome);
}

static int take_hello(struct notify_client *notify_client, const struct packet *packet, error *err)
{
    struct notify_hello hello;
    for (; notify_client->was_up && notify_client->in_flight > 0; notify_client->in_flight--)
        note_ours(NOTIFY_WEBHOOK, NOTIFY_LOST, "", "glovebox-notify ended with it");
    notify_client->was_up = true;
    notify_client->is_heard = notify_client->has_warned = false;
    memcpy(&hello, packet->body, sizeof hello);
    if (hello.version != NOTIFY_VERSION)
        return fail(err, ERR_PROTOCOL, "glovebox-notify has protocol version %u, gloveboxd has %d",
                    hello.version, NOTIFY_VERSION);
    notify_client->is_heard = true;
    return 0;
}

static int take_outcome(struct notify_client *notify_client, const struct packet *packet,
                        error *err)
{
    struct notify_outcome outcome;
    memcpy(&outcome, packet->body, sizeof outcome);
    if (outcome.place >= NOTIFY_PLACES || outcome.end >= NOTIFY_LOST ||
        !memchr(outcome.id, '\0', sizeof outcome.id) ||
        !memchr(outcome.cause, '\0', sizeof outcome.cause))
        return fail(err, ERR_PROTOCOL, "glovebox-notify sent an outcome that is malformed");
    if (outcome.place == NOTIFY_WEBHOOK && outcome.end != NOTIFY_FAILED &&
        notify_client->in_flight > 0)
        notify_client->in_flight--;
    note(&outcome);
    return 0;
}

static int take_packet(struct notify_client *notify_client, const struct packet *packet, error *err)
{
    if (packet->kind == NOTIFY_HELLO && packet->size == sizeof(struct notify_hello))
        return take_hello(notify_client, packet, err);
    if (packet->kind == NOTIFY_OUTCOME && packet->size == sizeof(struct notify_outcome) &&
        notify_client->is_heard)
        return take_outcome(notify_client, packet, err);
    return fail(err, ERR_PROTOCOL, "glovebox-notify sent message %u of %zu bytes", packet->kind,
                packet->size);
}

/* Ignores the present peer after a mistake. `glovebox serve` keeps the other end of the socket and
 * gives it to the next process, which may be valid. */
static void drop(struct notify_client *notify_client, const error *cause)
{
    metric_add(METRIC_NOTIFY_MISSHAPEN, 0, 1);
    if (!notify_client->has_warned)
        log_event(NOTIFY_FAILED, TEXT("cause", cause->text));
    notify_client->has_warned = true;
}

/* recv() returns 0 both for an empty message and at the end. */
static bool has_gone(const struct notify_client *notify_client)
{
    struct pollfd end = { .fd = notify_client->socket, .events = POLLRDHUP };
    return poll(&end, 1, 0) > 0;
}

static void notify_speaks(uv_poll_t *poll, int status, int events)
{
    struct notify_client *notify_client = poll->data;
    (void) events;
    (void) loop_enter(CAUSE_NETWORK, NULL);
    for (unsigned i = 0; i < PACKETS_A_TURN; i++) {
        struct packet packet;
        error err = { 0 };
        int came =
            status < 0 ? PACKET_CLOSED : packet_receive(notify_client->socket, &packet, &err);
        if (came == PACKET_NONE)
            return;
        if (came == PACKET_CLOSED && (status < 0 || has_gone(notify_client))) {
            log_event(NOTIFY_FAILED, TEXT("cause", "its socket is closed"));
            (void) uv_poll_stop(poll); /* the other end is closed, and stays so */
            return;
        }
        if (came == PACKET_CLOSED)
            (void) fail(&err, ERR_PROTOCOL, "glovebox-notify sent an empty message");
        if (came == PACKET_CAME) {
            (void) take_packet(notify_client, &packet, &err);
            packet_done(&packet);
        }
        if (err.code != ERR_NONE)
            drop(notify_client, &err);
    }
}

int notify_client_open(uv_loop_t *loop, int socket, const struct notify_places *places,
                       struct notify_client **ret_notices, error *err)
{
    struct notify_client *notify_client = calloc(1, sizeof *notify_client);
    if (!notify_client)
        return fail(err, ERR_SYSTEM, "no memory for notices");
    notify_client->socket = socket;
    notify_client->has_webhook = places->has_webhook;
    notify_client->poll.data = notify_client;
    if (fcntl(socket, F_SETFL, O_NONBLOCK) < 0 || fcntl(socket, F_SETFD, FD_CLOEXEC) < 0 ||
        uv_poll_init(loop, &notify_client->poll, socket) < 0 ||
        uv_poll_start(&notify_client->poll, UV_READABLE, notify_speaks) < 0) {
        free(notify_client);
        return fail(err, ERR_SYSTEM, "watch the socket to glovebox-notify");
    }
    uv_unref((uv_handle_t *) &notify_client->poll);
    tracing = places->has_traces ? notify_client : NULL;
    *ret_notices = notify_client;
    return 0;
}

void notify_client_leave(struct notify_client *notify_client)
{
    if (notify_client)
        uv_close((uv_handle_t *) &notify_client->poll, NULL);
}

void notify_client_close(struct notify_client *notify_client)
{
    if (!notify_client)
        return;
    if (tracing == notify_client)
        tracing = NULL;
    (void) close(notify_client->socket);
    free(notify_client);
}

static bool hand_over(const struct notify_client *notify_client, enum notify_kind kind,
                      const struct notify_event *event, enum notify_place place)
{
    error err;
    if (packet_send(notify_client->socket, kind, event, sizeof *event, NULL, 0, &err) == 0)
        return true;
    note_ours(place, NOTIFY_DROPPED, event->id,
              err.os == EAGAIN ? "glovebox-notify does not keep up" : err.text);
    return false;
}

void notify_client_checkpoint(struct notify_client *notify_client, const char *text, size_t size)
{
    struct notify_event event = { .size = (uint32_t) size };
    if (!notify_client || size > sizeof event.body)
        return;
    memcpy(event.body, text, size);
    (void) hand_over(notify_client, NOTIFY_CHECKPOINT, &event, NOTIFY_WITNESS);
}

void notify_client_event(struct notify_client *notify_client, const char *id,
                         const struct bytes *body)
{
    struct notify_event packet = { 0 };
    if (!notify_client || !notify_client->has_webhook)
        return;
    (void) snprintf(packet.id, sizeof packet.id, "%s", id);
    if (body->failed || body->size > sizeof packet.body) {
        note_ours(NOTIFY_WEBHOOK, NOTIFY_DROPPED, packet.id, "it is too long");
        return;
    }
    memcpy(packet.body, body->data, body->size);
    packet.size = (uint32_t) body->size;
    if (hand_over(notify_client, NOTIFY_EVENT, &packet, NOTIFY_WEBHOOK) &&
        notify_client->in_flight < IN_FLIGHT_MAX)
        notify_client->in_flight++;
}

bool notify_client_has_traces(void)
{
    return tracing != NULL;
}

/* There may be many in a second: what cannot be sent is counted, and not logged each time. */
void notify_client_span(const struct bytes *span)
{
    struct notify_event packet = { .size = (uint32_t) span->size };
    error err;
    if (!tracing)
        return;
    bool is_whole = !span->failed && span->size <= sizeof packet.body;
    if (is_whole)
        memcpy(packet.body, span->data, span->size);
    if (!is_whole ||
        packet_send(tracing->socket, NOTIFY_SPAN, &packet, sizeof packet, NULL, 0, &err) < 0)
        metric_add(METRIC_TRACES, NOTIFY_DROPPED, 1);
}
