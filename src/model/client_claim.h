/* client_claim.h - what a client says of itself and of its call. Nobody has checked that it is
 * true; each text is one line of UTF-8, and "" where nothing fit was said. */
#pragma once

struct client_claim {
    char client[65], version[33];
    char protocol[33]; /* "mcp/2026-07-28" */
    char tool[65];
    char traceparent[56], tracestate[257]; /* W3C Trace Context */
};
