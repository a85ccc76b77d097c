/* socket_watcher.c - see socket_watcher.h. */
#include "outbound/socket_watcher.h"

#include <stdlib.h>

enum { AGAIN_MS = 50 };

/* A socket that the kernel could not watch has a timer instead of a poll handle. */
struct watched {
    struct watched_sockets *sockets;
    int socket, events;
    bool is_put_off;
    union {
        uv_handle_t handle;
        uv_poll_t poll;
        uv_timer_t again;
    };
    struct watched *next;
};

static int watch(struct watched_sockets *sockets, int socket, int events, struct watched **place);

static void socket_is_ready(uv_poll_t *poll, int status, int events)
{
    struct watched *watched = poll->data;
    watched->sockets->ready(watched->sockets->context, watched->socket,
                            status < 0 || (events & UV_READABLE),
                            status < 0 || (events & UV_WRITABLE));
}

static void watched_closed(uv_handle_t *handle)
{
    free(handle->data);
}

/* Ends the watch at once; libuv frees the handle a little later. */
static void stop_watching(struct watched **place)
{
    struct watched *leaving = *place;
    *place = leaving->next;
    uv_close(&leaving->handle, watched_closed);
}

static struct watched **find(struct watched_sockets *sockets, int socket)
{
    struct watched **place = &sockets->first;
    while (*place && (*place)->socket != socket)
        place = &(*place)->next;
    return place;
}

static void try_again(uv_timer_t *timer)
{
    const struct watched *watched = timer->data;
    struct watched **place = find(watched->sockets, watched->socket);
    if (watch(watched->sockets, watched->socket, watched->events, place) == 0)
        stop_watching(&(*place)->next);
}

static int watch(struct watched_sockets *sockets, int socket, int events, struct watched **place)
{
    struct watched *fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        return -1;
    *fresh =
        (struct watched){ .sockets = sockets, .socket = socket, .events = events, .next = *place };
    fresh->is_put_off = uv_poll_init(sockets->loop, &fresh->poll, socket) < 0;
    if (fresh->is_put_off)
        (void) uv_timer_init(sockets->loop, &fresh->again);
    fresh->handle.data = fresh;
    *place = fresh;
    return fresh->is_put_off ? uv_timer_start(&fresh->again, try_again, AGAIN_MS, AGAIN_MS)
                             : uv_poll_start(&fresh->poll, events, socket_is_ready);
}

int watched_change(struct watched_sockets *sockets, int socket, bool reads, bool writes)
{
    struct watched **place = find(sockets, socket);
    int events = (reads ? UV_READABLE : 0) | (writes ? UV_WRITABLE : 0);
    if (events == 0) {
        if (*place)
            stop_watching(place);
        return 0;
    }
    if (!*place)
        return watch(sockets, socket, events, place);
    (*place)->events = events;
    return (*place)->is_put_off ? 0 : uv_poll_start(&(*place)->poll, events, socket_is_ready);
}
