/* authenticate.h - identifies the caller of a request, and adds its quotas to the answer. */
#pragma once

#include "base/error.h"
#include "doors/http/http.h"

/* Is the peer of this Unix socket root, or the user `owner`? */
bool peer_is_owner(int socket, unsigned owner);

/* http_settings.admit: sets exchange->caller.account and checks its right for the route. Fails
 * ERR_UNAUTHORIZED  no key, or an invalid one; ERR_FORBIDDEN  it lacks the scope; ERR_BUSY  its
 * tenant holds half of all connections. */
int identify(struct exchange *exchange, error *err);

/* A tenant that waits on half of all connections gets no more of them, so that others get some.
 * Fails  ERR_BUSY. For callers whose account is not known yet in identify(). */
int identity_check_share(const struct exchange *exchange, error *err);

/* http_settings.answering: WWW-Authenticate, Retry-After, RateLimit
 * (draft-ietf-httpapi-ratelimit-headers-10, and the older three that most clients read). */
void add_identity_headers(struct exchange *exchange, unsigned status);
