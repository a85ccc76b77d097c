/* service_ports.h - connections to servers that listen inside a session. init makes them, on the
 * sandbox's own loopback; here they are bytes both ways, with a window each way. */
#pragma once

#include "base/error.h"
#include "engine/service/service.h"

#include <stddef.h>
#include <stdint.h>

struct port_link;
struct session;

/* Connects to a server of a session that was entered (service_session_enter()); `waker` is called
 * whenever something has come, or may go. Counts it, in the log and as use of the session.
 * Fails  ERR_CONFLICT  the session does not run; ERR_POLICY  its outputs are withheld;
 *        ERR_BUSY  too many are under way */
int service_port_connect(struct session *session, uint16_t port, const struct waker *waker,
                         struct port_link **ret_link, error *err);
void port_link_free(struct port_link *link);

bool port_link_is_open(const struct port_link *link);   /* the server has accepted */
bool port_link_has_ended(const struct port_link *link); /* it sends no more */
/* Fails  with why there will be no answer at all. */
int port_link_check(const struct port_link *link, error *err);

/* What has come from the server and was not taken yet: borrowed until the next call. */
const char *port_link_waiting(const struct port_link *link, size_t *ret_size);
void port_link_take(struct port_link *link, size_t size); /* at most as much as waits */

/* To the server. What is given after the end of a connection is thrown away. */
bool port_link_has_room(const struct port_link *link);
void port_link_give(struct port_link *link, const void *bytes, size_t size);
void port_link_end_input(struct port_link *link);
