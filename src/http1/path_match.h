/* path_match.h - compares the path of a request with the prefix of a rule. Pure; any thread. */
#pragma once

#include "http1/request_head.h"

/* True if `path` (with a query or without) is below `prefix` and has only one meaning: no "." or
 * ".." segment, no encoded slash, backslash or NUL. */
bool http_path_is_below(struct http_text path, const char *prefix);
