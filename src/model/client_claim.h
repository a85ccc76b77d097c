/* client_claim.h - what a client says of itself and of its call. It was not checked that it is
 * true; each text is one line of UTF-8, and "" where nothing fit was said. */
#pragma once

#include <stdbool.h>

/* Places in a traceparent: https://www.w3.org/TR/trace-context/ */
enum { TRACE_ID_AT = 3, TRACE_ID_LENGTH = 32, SPAN_ID_AT = 36, SPAN_ID_LENGTH = 16 };

struct client_claim {
    char client[65], version[33];
    char protocol[33]; /* "mcp/2026-07-28" */
    char tool[65];
    char traceparent[56], tracestate[257]; /* W3C Trace Context */
};

/* Of the form of version 00, and not all zero. NULL is none. */
bool traceparent_is_valid(const char *text);
bool traceparent_is_sampled(const char *text); /* a valid one: is the caller's span recorded? */
