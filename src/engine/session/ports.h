/* ports.h - connections to servers that listen inside a session. init makes them, on the sandbox's
 * own loopback; here they are bytes both ways, with a window each way, and the answer of an HTTP
 * server that nobody trusts. */
#pragma once

#include "base/bytes.h"
#include "engine/session/session.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PORT_WINDOW = 256 * 1024 };

struct port_link {
    struct session *session; /* NULL once it has ended */
    struct session_operation operation;
    void (*woken)(void *context);
    void *context;
    bool stands;    /* the server has accepted */
    bool has_ended; /* it sends no more */
    bool is_ended;  /* both ways, or `failure` */
    bool input_ends, input_has_ended;
    error failure;
    struct bytes in; /* from the server, not taken yet */
    size_t taken;
    uint64_t owed;
    struct bytes out; /* to the server, waits for its window */
    size_t window;
};

/* `woken` and `context` have been set, the rest is zero. Fails as session_begin(). */
int port_link_begin(struct port_link *link, struct session *session, uint16_t port, error *err);
void port_link_close(struct port_link *link);
size_t port_link_take(struct port_link *link, char *bytes, size_t size);
bool port_link_has_room(const struct port_link *link);
void port_link_give(struct port_link *link, const void *bytes, size_t size);
void port_link_end_input(struct port_link *link);
