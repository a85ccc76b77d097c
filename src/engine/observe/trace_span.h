/* trace_span.h - a span of OpenTelemetry, as the JSON of OTLP, for the collector that an operator
 * has named (otlp_endpoint). Nothing here waits or fails for its caller. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct trace_attribute {
    const char *key;
    const char *text; /* NULL: `number` is its value; "": it is left out */
    uint64_t number;
};

struct trace_span {
    const char *name;
    const char *traceparent; /* a valid one of the caller; "": it begins a trace of its own */
    int64_t took_us;         /* until now */
    const char *failure;     /* NULL: it went well */
    const struct trace_attribute *attributes; /* the first are kept where not all fit */
    size_t count;
};

/* Not sent if the caller's own span is not recorded. */
void trace_span_end(const struct trace_span *span);
