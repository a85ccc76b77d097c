/* port_relay.h - copies bytes in both directions between a connection that has left HTTP and a
 * server inside a session. */
#pragma once

#include "engine/service/service_ports.h"

#include <stdbool.h>
#include <uv.h>

struct exchange;

/* The first member of exchange->user, zeroed at first; `link` is borrowed. */
struct port_relay {
    struct exchange *exchange;
    struct port_link *link;
    uv_poll_t *poll; /* while it runs */
    int socket;      /* borrowed from the exchange */
    bool peer_ended; /* the client sends no more */
};

/* Answers 101 with `Upgrade: protocol`; exchange->user must begin with the relay. */
void port_relay_begin(struct port_relay *relay, const char *protocol);

/* For the link's waker: returns true if it was handled, false while the exchange is still HTTP. */
bool port_relay_woken(struct port_relay *relay);
