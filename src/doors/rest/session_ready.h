/* session_ready.h - requests about a session that come too early.
 *
 * A branch is answered for as soon as its moment is fixed, some time before its sandbox has all the
 * memory: until then requests to it wait, and so does what would end the parent that is still being
 * read. What a route waits for stands in its row (enum awaits). Bounded by the deadlines of
 * restore.h: then the branch stands or has ended, and the request is answered accordingly. */
#pragma once

#include "doors/http/http.h"

/* http_settings.is_early */
bool session_is_early(struct exchange *exchange);
