/* trace_span.c - see trace_span.h.
 * Form: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding */
#include "engine/observe/trace_span.h"

#include "base/clock.h"
#include "contract/notify.h"
#include "engine/observe/notify_client.h"
#include "model/client_claim.h"
#include "json/writer.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>

enum { KIND_SERVER = 2, STATUS_ERROR = 2, TAIL_MAX = 2 /* "]}" */ };

static void random_id(char *ret_text, size_t length)
{
    unsigned char bytes[TRACE_ID_LENGTH / 2];
    randombytes_buf(bytes, length / 2);
    (void) sodium_bin2hex(ret_text, length + 1, bytes, length / 2);
}

static void write_ids(const char *parent, struct bytes *out)
{
    char trace[TRACE_ID_LENGTH + 1], span[SPAN_ID_LENGTH + 1];
    random_id(span, SPAN_ID_LENGTH);
    if (*parent)
        (void) snprintf(trace, sizeof trace, "%.*s", TRACE_ID_LENGTH, parent + TRACE_ID_AT);
    else
        random_id(trace, TRACE_ID_LENGTH);
    json_string_field(out, "traceId", trace);
    json_string_field(out, "spanId", span);
    if (*parent) {
        json_key(out, "parentSpanId");
        json_text(out, parent + SPAN_ID_AT, SPAN_ID_LENGTH);
    }
}

/* JSON of protobuf writes 64-bit numbers as texts. */
static void write_moment(struct bytes *out, const char *key, int64_t ns)
{
    char text[32];
    (void) snprintf(text, sizeof text, "%" PRId64, ns);
    json_string_field(out, key, text);
}

static void write_attribute(const struct trace_attribute *attribute, struct bytes *out)
{
    json_open(out, '{');
    json_string_field(out, "key", attribute->key);
    json_open_field(out, "value", '{');
    if (attribute->text)
        json_string_field(out, "stringValue", attribute->text);
    else
        write_moment(out, "intValue", (int64_t) attribute->number);
    json_close_all(out, "}}");
}

static void write_attributes(const struct trace_span *span, struct bytes *out)
{
    json_open_field(out, "attributes", '[');
    for (size_t i = 0; i < span->count; i++) {
        size_t before = out->size;
        if (span->attributes[i].text && !*span->attributes[i].text)
            continue;
        write_attribute(&span->attributes[i], out);
        if (out->size + TAIL_MAX > NOTIFY_BODY_SIZE)
            out->size = before;
    }
    json_close(out, ']');
}

void trace_span_end(const struct trace_span *span)
{
    int64_t now_ns = wall_clock_ms() * 1000000;
    if (!notify_client_has_traces() ||
        (*span->traceparent && !traceparent_is_sampled(span->traceparent)))
        return;
    auto_bytes out = json_begin('{');
    write_ids(span->traceparent, &out);
    json_string_field(&out, "name", span->name);
    json_count_field(&out, "kind", KIND_SERVER);
    write_moment(&out, "startTimeUnixNano", now_ns - span->took_us * 1000);
    write_moment(&out, "endTimeUnixNano", now_ns);
    if (span->failure) {
        json_open_field(&out, "status", '{');
        json_count_field(&out, "code", STATUS_ERROR);
        json_string_field(&out, "message", span->failure);
        json_close(&out, '}');
    }
    write_attributes(span, &out);
    json_close(&out, '}');
    notify_client_span(&out);
}
