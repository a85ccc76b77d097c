/* port_relay.h - bytes both ways between a connection that leaves HTTP and a server inside a
 * session. */
#pragma once

#include "engine/service/service_ports.h"

#include <stdbool.h>
#include <uv.h>

struct exchange;

/* Stands in memory of the exchange's user, zeroed at first; `link` is borrowed. */
struct port_relay {
    struct exchange *exchange;
    struct port_link *link;
    uv_poll_t *poll; /* while it runs */
    int socket;      /* borrowed of the exchange */
    bool peer_ended; /* the client sends no more */
};

/* Answers 101 with `Upgrade: protocol`; exchange->user must begin with the relay. */
void port_relay_begin(struct port_relay *relay, const char *protocol);

/* For the link's waker: true if it took the call, false while the exchange still speaks HTTP. */
bool port_relay_woken(struct port_relay *relay);
