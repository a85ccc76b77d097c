/* path_match.h - paths of requests, as rules have them. Pure; any thread. */
#pragma once

#include "http1/request_head.h"

/* True if `path` (with a query or not) lies below `prefix`, and cannot be read as something else:
 * no "." or ".." segment, no encoded slash, backslash or NUL. */
bool http_path_is_below(struct http_text path, const char *prefix);
