/* session.h - addresses of what belongs to a session. */
#pragma once

#include "base/error.h"

#include <stddef.h>

/* "/v1/sessions/ID" and the rest. Fails ERR_BAD_REQUEST if the id is none. */
int session_path(char *path, size_t size, const char *session, const char *rest, error *err);
