/* trace_span.h - a span of OpenTelemetry, as JSON of OTLP, for the collector of the setting
 * otlp_endpoint. No call waits or fails. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct trace_attribute {
    const char *key;
    const char *text; /* NULL: `number` is the value; "": left out */
    uint64_t number;
};

struct trace_span {
    const char *name;
    const char *traceparent;                  /* of the caller, and valid; "": a new trace begins */
    int64_t took_us;                          /* up to now */
    const char *failure;                      /* NULL: no failure */
    const struct trace_attribute *attributes; /* if not all fit, the first are kept */
    size_t count;
};

/* Not sent if the caller's own span is not recorded. */
void trace_span_end(const struct trace_span *span);
