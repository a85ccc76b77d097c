/* link.c - packets from and to gloveboxd. */
#include "notify/notify.h"

#include "base/packet.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The socket should have room for it: gloveboxd reads, and never waits for this program. */
void link_tell(struct notify *notify, const struct notify_outcome *outcome)
{
    error err;
    if (notify->is_leaving)
        return;
    if (packet_send(notify->daemon, NOTIFY_OUTCOME, outcome, sizeof *outcome, NULL, 0, &err) < 0)
        (void) fprintf(stderr, "glovebox-notify: tell gloveboxd of '%s': %s\n", outcome->id,
                       err.text);
}

static int take_event(struct notify *notify, const struct packet *packet, error *err)
{
    struct notify_event event;
    if (packet->size != sizeof event || packet->fds != 0)
        return fail(err, ERR_PROTOCOL, "an event is malformed");
    memcpy(&event, packet->body, sizeof event);
    enum notify_place place = packet->kind == NOTIFY_EVENT        ? NOTIFY_WEBHOOK
                              : packet->kind == NOTIFY_CHECKPOINT ? NOTIFY_WITNESS
                                                                  : NOTIFY_TRACES;
    if (event.size > sizeof event.body || !memchr(event.id, '\0', sizeof event.id) ||
        !notify->places[place].url[0])
        return fail(err, ERR_PROTOCOL, "an event of %u bytes has no valid destination", event.size);
    if (place == NOTIFY_TRACES)
        traces_add(notify, &event);
    else
        deliver(notify, place, &event);
    return 0;
}

static int take_packet(struct notify *notify, const struct packet *packet, error *err)
{
    if (packet->kind == NOTIFY_EVENT || packet->kind == NOTIFY_CHECKPOINT ||
        packet->kind == NOTIFY_SPAN)
        return take_event(notify, packet, err);
    return fail(err, ERR_PROTOCOL, "message %u does not exist", packet->kind);
}

enum { LAST_MS = 5000 /* a TLS handshake on a busy host */, LAST_LOOK_MS = 10 };

static void end_if_done(uv_timer_t *timer)
{
    struct notify *notify = timer->data;
    if (deliveries_are_done(notify) || deadline_has_passed(notify->end))
        _exit(0);
}

static void leave(struct notify *notify, const error *err)
{
    if (err->code != ERR_NONE) {
        (void) fprintf(stderr, "glovebox-notify: %s\n", err->text);
        _exit(1);
    }
    (void) uv_poll_stop(&notify->daemon_poll);
    notify->is_leaving = true;
    notify->end = deadline_in(LAST_MS);
    notify->leaving.data = notify;
    traces_flush(notify);
    deliveries_hurry(notify);
    (void) uv_timer_init(&notify->loop, &notify->leaving);
    (void) uv_timer_start(&notify->leaving, end_if_done, 0, LAST_LOOK_MS);
}

static void on_daemon(uv_poll_t *poll, int status, int events)
{
    (void) events;
    struct notify *notify = poll->data;
    for (unsigned i = 0; i < 64; i++) {
        struct packet packet;
        error err = { 0 };
        int came = status < 0 ? PACKET_CLOSED : packet_receive(notify->daemon, &packet, &err);
        if (came == PACKET_NONE)
            return;
        if (came != PACKET_CAME) {
            leave(notify, &err);
            return;
        }
        int done = take_packet(notify, &packet, &err);
        packet_done(&packet);
        if (done < 0)
            leave(notify, &err);
    }
}

int link_open(struct notify *notify, int socket, error *err)
{
    notify->daemon = socket;
    if (fcntl(socket, F_SETFL, O_NONBLOCK) < 0)
        return fail_os(err, "use the socket to gloveboxd");
    struct notify_hello hello = { .version = NOTIFY_VERSION };
    if (packet_send(socket, NOTIFY_HELLO, &hello, sizeof hello, NULL, 0, err) < 0)
        return -1;
    notify->daemon_poll.data = notify;
    if (uv_poll_init(&notify->loop, &notify->daemon_poll, socket) < 0 ||
        uv_poll_start(&notify->daemon_poll, UV_READABLE | UV_DISCONNECT, on_daemon) < 0)
        return fail(err, ERR_SYSTEM, "watch the socket to gloveboxd");
    return 0;
}
