/* session_ready.h - requests about a session that come too early: what a route waits for stands in
 * its row (enum awaits). */
#pragma once

#include "doors/http/http.h"

/* http_settings.is_early */
bool session_is_early(struct exchange *exchange);
