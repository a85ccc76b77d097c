/* message.c - reads one JSON-RPC message: its kind, which side sends it, and its generation of
 * MCP. */
#include "base/table.h"
#include "doors/mcp/mcp.h"
#include "json/writer.h"

#include <microhttpd.h>
#include <string.h>

enum { METHOD_MAX = 128, ID_MAX = 256 };

/* The whole numbers that JavaScript represents exactly. */
static const int64_t id_number_max = INT64_C(1) << 53;

static const char *const handshake_versions[] = { "2025-11-25", "2025-06-18", "2025-03-26" };

static int refuse(struct mcp_call *call, int code, const char *message)
{
    call->status = MHD_HTTP_BAD_REQUEST;
    mcp_fail_with(call, code, NULL, message);
    return -1;
}

static bool id_is_good(struct json_object *id)
{
    if (json_object_is_type(id, json_type_string))
        return json_object_get_string_len(id) <= ID_MAX;
    if (!json_object_is_type(id, json_type_int))
        return false;
    int64_t number = json_object_get_int64(id);
    return number >= -id_number_max && number <= id_number_max;
}

/* Checks what JSON-RPC 2.0 demands of every message. */
static int read_envelope(struct mcp_call *call)
{
    struct json_object *id = NULL;
    if (json_object_is_type(call->root, json_type_array))
        return refuse(call, MCP_INVALID_REQUEST,
                      "batches are not served; send each message by itself");
    if (!json_object_is_type(call->root, json_type_object))
        return refuse(call, MCP_INVALID_REQUEST, "a message is a JSON object");
    const char *version = member_text(call->root, "jsonrpc");
    bool has_id = json_object_object_get_ex(call->root, "id", &id);
    if (has_id && !id_is_good(id))
        return refuse(call, MCP_INVALID_REQUEST,
                      "'id' is a text of at most 256 bytes, or a whole number up to 2^53");
    call->id = id;
    if (!version || strcmp(version, "2.0") != 0)
        return refuse(call, MCP_INVALID_REQUEST, "'jsonrpc' must be \"2.0\"");
    call->method_name = member_text(call->root, "method");
    if (!call->method_name && json_member(call->root, "method"))
        return refuse(call, MCP_INVALID_REQUEST, "'method' is a text");
    bool is_answer =
        has_id && (json_member(call->root, "result") || json_member(call->root, "error"));
    if (!call->method_name && !is_answer)
        return refuse(call, MCP_INVALID_REQUEST, "a message has a 'method'");
    if (call->method_name && strlen(call->method_name) > METHOD_MAX) {
        call->status = MHD_HTTP_NOT_FOUND;
        mcp_fail(call, MCP_NO_METHOD, "no method is named '%.40s…'", call->method_name);
        return -1;
    }
    if (json_object_object_get_ex(call->root, "params", &call->params) &&
        !json_object_is_type(call->params, json_type_object))
        return refuse(call, MCP_INVALID_PARAMS, "'params' is an object");
    if (json_member(call->params, "_meta") &&
        !json_object_is_type(json_member(call->params, "_meta"), json_type_object))
        return refuse(call, MCP_INVALID_PARAMS, "'_meta' is an object");
    call->meta = json_member(call->params, "_meta");
    call->progress_token = json_member(call->meta, "progressToken");
    if (call->progress_token && !id_is_good(call->progress_token))
        return refuse(call, MCP_INVALID_PARAMS, "'progressToken' is a text or a whole number");
    return 0;
}

static int refuse_version(struct mcp_call *call, const char *asked)
{
    auto_bytes data = { 0 };
    bytes_add_text(&data, "{\"supported\":[\"" MCP_NEWEST "\"");
    for_each(version, handshake_versions)
        bytes_print(&data, ",\"%s\"", *version);
    bytes_add_text(&data, "],\"requested\":");
    json_string(&data, asked);
    bytes_add_text(&data, "}");
    call->status = MHD_HTTP_BAD_REQUEST;
    mcp_fail_with(call, MCP_UNSUPPORTED_VERSION, bytes_text(&data), "Unsupported protocol version");
    return -1;
}

static const char *handshake_version(const char *asked)
{
    for_each(version, handshake_versions)
        if (asked && strcmp(*version, asked) == 0)
            return *version;
    return NULL;
}

/* A request without a handshake, which is complete in itself. */
static int read_stateless(struct mcp_call *call, const char *asked)
{
    call->era = ERA_STATELESS;
    if (!asked)
        return refuse(call, MCP_INVALID_PARAMS,
                      "_meta lacks \"" MCP_META "protocolVersion\", a text");
    if (mcp_header_check_version(call, asked) < 0)
        return -1;
    if (strcmp(asked, MCP_NEWEST) != 0)
        return refuse_version(call, asked);
    call->version = MCP_NEWEST;
    call->capabilities = json_member(call->meta, MCP_META "clientCapabilities");
    if (call->id && !json_object_is_type(call->capabilities, json_type_object))
        return refuse(call, MCP_INVALID_PARAMS,
                      "_meta lacks \"" MCP_META "clientCapabilities\", an object");
    call->client = call->process;
    return 0;
}

/* A request of a handshake, or of an older client without one. */
static int read_handshake(struct mcp_call *call)
{
    const char *version = exchange_header(call->exchange, "MCP-Protocol-Version");
    const char *session = exchange_header(call->exchange, "Mcp-Session-Id");
    call->era = ERA_HANDSHAKE;
    call->version = version ? handshake_version(version) : handshake_versions[2];
    if (call->method_name && strcmp(call->method_name, "initialize") == 0) {
        const char *asked = member_text(call->params, "protocolVersion");
        if (!asked)
            return refuse(call, MCP_INVALID_PARAMS, "initialize has a 'protocolVersion', a text");
        call->version = handshake_version(asked);
        if (!call->version)
            call->version = handshake_versions[0];
        call->capabilities = json_member(call->params, "capabilities");
        return 0;
    }
    if (!call->version)
        return refuse_version(call, version);
    if (!call->client)
        call->client = call->process;
    if (!session)
        return 0;
    call->client = mcp_client_find(CLIENT_HANDSHAKE, session, call->exchange);
    if (!call->client) {
        call->status = MHD_HTTP_NOT_FOUND;
        mcp_fail(call, MCP_INVALID_REQUEST,
                 "this Mcp-Session-Id is unknown or has ended; send initialize");
        return -1;
    }
    if (!version && call->client->version)
        call->version = call->client->version;
    return 0;
}

int mcp_message_read(struct mcp_call *call, struct json_reader *body)
{
    error err;
    if (json_reader_end(body, &call->root, &err) < 0)
        return refuse(call, MCP_PARSE, err.text);
    json_reader_close(body);
    if (read_envelope(call) < 0)
        return -1;
    const char *process = exchange_header(call->exchange, "Glovebox-Process");
    if (process)
        call->process = mcp_client_find(CLIENT_PROCESS, process, call->exchange);
    const char *said = exchange_header(call->exchange, "MCP-Protocol-Version");
    bool is_marked = json_member(call->meta, MCP_META "protocolVersion") != NULL;
    if (is_marked || (said && strcmp(said, MCP_NEWEST) == 0))
        return read_stateless(call, member_text(call->meta, MCP_META "protocolVersion"));
    return read_handshake(call);
}
