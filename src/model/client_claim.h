/* client_claim.h - what a client says about itself and its call. It may be wrong; each text is one
 * line of UTF-8, and "" if the client said nothing valid. */
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

/* Is it a traceparent of version 00, with ids that are not zero? False for NULL. */
bool traceparent_is_valid(const char *text);
bool traceparent_is_sampled(const char *text); /* of a valid one: is the caller's span recorded? */
