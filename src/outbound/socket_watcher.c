/* socket_watcher.c - see socket_watcher.h. */
#include "outbound/socket_watcher.h"

#include <stdlib.h>

struct watched {
    struct watched_sockets *sockets;
    int socket;
    uv_poll_t poll;
    struct watched *next;
};

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

/* The library is done with its socket at once, libuv keeps the handle a little longer. */
static void stop_watching(struct watched **place)
{
    struct watched *leaving = *place;
    *place = leaving->next;
    uv_close((uv_handle_t *) &leaving->poll, watched_closed);
}

int watched_change(struct watched_sockets *sockets, int socket, bool reads, bool writes)
{
    struct watched **place = &sockets->first;
    while (*place && (*place)->socket != socket)
        place = &(*place)->next;
    if (!reads && !writes) {
        if (*place)
            stop_watching(place);
        return 0;
    }
    if (!*place) {
        struct watched *fresh = calloc(1, sizeof *fresh);
        if (!fresh || uv_poll_init(sockets->loop, &fresh->poll, socket) < 0) {
            free(fresh);
            return -1;
        }
        fresh->sockets = sockets;
        fresh->socket = socket;
        fresh->poll.data = fresh;
        *place = fresh;
    }
    return uv_poll_start(&(*place)->poll, (reads ? UV_READABLE : 0) | (writes ? UV_WRITABLE : 0),
                         socket_is_ready);
}
