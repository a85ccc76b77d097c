/* service_ports.h - connections to servers inside a session. init connects on the sandbox's own
 * loopback; here they are bytes in both directions, with a window for each. */
#pragma once

#include "base/error.h"
#include "engine/service/service.h"

#include <stddef.h>
#include <stdint.h>

struct port_link;
struct session;

/* Connects to a server of a session (service_session_enter()). `waker` is called when bytes have
 * come or may be sent. Logs it, and counts it as use of the session. Fails  ERR_CONFLICT  the
 * session does not run; ERR_POLICY  its output is withheld; ERR_BUSY  too many connections */
int service_port_connect(struct session *session, uint16_t port, const struct waker *waker,
                         struct port_link **ret_link, error *err);
void port_link_free(struct port_link *link);

bool port_link_is_open(const struct port_link *link);   /* the server has accepted */
bool port_link_has_ended(const struct port_link *link); /* it sends no more */
/* Fails  with the reason why there will be no answer. */
int port_link_check(const struct port_link *link, error *err);

/* Bytes from the server that were not taken yet, borrowed until the next call. */
const char *port_link_waiting(const struct port_link *link, size_t *ret_size);
void port_link_take(struct port_link *link, size_t size); /* at most as much as waits */

/* Sends to the server. Bytes after the end of a connection are dropped. */
bool port_link_has_room(const struct port_link *link);
void port_link_give(struct port_link *link, const void *bytes, size_t size);
void port_link_end_input(struct port_link *link);
