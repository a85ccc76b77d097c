/* reply.c - results, failures and notifications, each a JSON-RPC message. */
#include "base/table.h"
#include "base/utf8.h"
#include "doors/mcp/mcp.h"
#include "json/writer.h"

#include <inttypes.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PROGRESS_MS = 1000 };

static void open_message(struct mcp_call *call)
{
    bytes_add_text(&call->out, call->is_stream ? "event: message\ndata: {" : "{");
    json_string_field(&call->out, "jsonrpc", "2.0");
}

static size_t line_end_size(const struct bytes *out, size_t at)
{
    static const char *const ends[] = { "\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9" };
    for_each(end, ends)
        if (out->size - at >= strlen(*end) && memcmp(out->data + at, *end, strlen(*end)) == 0)
            return strlen(*end);
    return 0;
}

/* U+0085, U+2028 and U+2029 end lines for some readers of streams or stdin (Python's
 * str.splitlines()): output of a program could begin a line there. */
static void escape_line_ends(struct bytes *out)
{
    auto_bytes escaped = { 0 };
    size_t copied = 0;
    for (size_t at = 0; at < out->size; at++) {
        size_t size = (unsigned char) out->data[at] < 0x80 ? 0 : line_end_size(out, at);
        if (size == 0)
            continue;
        bytes_add(&escaped, out->data + copied, at - copied);
        bytes_print(&escaped, "\\u%04x",
                    utf8_code_point((const void *) (out->data + at), (int) size));
        copied = at + size;
    }
    if (copied == 0)
        return;
    bytes_add(&escaped, out->data + copied, out->size - copied);
    struct bytes raw = *out;
    *out = escaped;
    escaped = raw;
}

static void close_message(struct mcp_call *call)
{
    json_close(&call->out, '}');
    escape_line_ends(&call->out);
    if (call->is_stream)
        bytes_add_text(&call->out, "\n\n");
}

void mcp_write_id(const struct mcp_call *call, struct bytes *out)
{
    if (json_object_is_type(call->id, json_type_string))
        json_text(out, json_object_get_string(call->id),
                  (size_t) json_object_get_string_len(call->id));
    else if (call->id)
        json_number(out, json_object_get_int64(call->id));
    else
        json_null(out);
}

static void write_id(struct mcp_call *call)
{
    json_key(&call->out, "id");
    mcp_write_id(call, &call->out);
}

void mcp_write_server(const struct mcp_call *call, struct bytes *out)
{
    json_open(out, '{');
    json_string_field(out, "name", call->catalogue->name);
    json_string_field(out, "title", call->catalogue->title);
    json_string_field(out, "version", GLOVEBOX_VERSION);
    json_close(out, '}');
}

struct bytes *mcp_result_open(struct mcp_call *call, const char *type)
{
    open_message(call);
    write_id(call);
    json_open_field(&call->out, "result", '{');
    if (call->era == ERA_STATELESS)
        json_string_field(&call->out, "resultType", type ? type : "complete");
    return &call->out;
}

void mcp_result_close(struct mcp_call *call)
{
    if (call->era == ERA_STATELESS) {
        json_open_field(&call->out, "_meta", '{');
        json_key(&call->out, MCP_META "serverInfo");
        mcp_write_server(call, &call->out);
        json_close(&call->out, '}');
    }
    json_close(&call->out, '}');
    close_message(call);
    call->is_over = true;
}

void mcp_fail_with(struct mcp_call *call, int code, const char *data, const char *message)
{
    open_message(call);
    write_id(call);
    json_open_field(&call->out, "error", '{');
    json_number_field(&call->out, "code", code);
    json_string_field(&call->out, "message", message);
    if (data) {
        json_key(&call->out, "data");
        json_raw(&call->out, data, strlen(data));
    }
    json_close(&call->out, '}');
    close_message(call);
    call->is_over = true;
}

void mcp_fail(struct mcp_call *call, int code, const char *format, ...)
{
    char message[512];
    va_list values;
    va_start(values, format);
    (void) vsnprintf(message, sizeof message, format, values);
    va_end(values);
    mcp_fail_with(call, code, NULL, message);
}

void mcp_accept(struct mcp_call *call)
{
    call->status = MHD_HTTP_ACCEPTED;
    call->is_over = true;
}

struct bytes *mcp_notice_open(struct mcp_call *call, const char *method, const char *id)
{
    open_message(call);
    if (id)
        json_string_field(&call->out, "id", id);
    json_string_field(&call->out, "method", method);
    json_open_field(&call->out, "params", '{');
    return &call->out;
}

void mcp_notice_close(struct mcp_call *call)
{
    json_close(&call->out, '}');
    close_message(call);
}

void mcp_progress(struct mcp_call *call, const char *message)
{
    int64_t since_ms = now_ms() - call->began_ms;
    if (!call->progress_token || !call->is_stream ||
        since_ms < (int64_t) call->progress * PROGRESS_MS)
        return;
    struct bytes *out = mcp_notice_open(call, "notifications/progress", NULL);
    json_key(out, "progressToken");
    if (json_object_is_type(call->progress_token, json_type_string))
        json_string(out, json_object_get_string(call->progress_token));
    else
        json_number(out, json_object_get_int64(call->progress_token));
    json_key(out, "progress");
    bytes_print(out, "%" PRId64 ".%03" PRId64, since_ms / 1000, since_ms % 1000);
    json_string_field(out, "message", message);
    mcp_notice_close(call);
    call->progress = (unsigned) (since_ms / PROGRESS_MS) + 1;
}
