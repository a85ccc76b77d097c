/* session_ready.h - requests about a session that come too early: the row of a route says what it
 * must wait for (enum awaits). */
#pragma once

#include "doors/http/http.h"

/* http_settings.is_early */
bool session_is_early(struct exchange *exchange);
