/* routes.c - /mcp: messages are sent by POST; a stdio process keeps a GET open while it lives. */
#include "base/table.h"
#include "doors/mcp/mcp.h"
#include "json/writer.h"

#include <ctype.h>
#include <microhttpd.h>
#include <string.h>

static void post_message(struct exchange *exchange)
{
    struct mcp_call *call = exchange->user;
    if (!call) {
        call = mcp_call_open(exchange);
        if (!call)
            return;
        if (mcp_message_read(call, &exchange->body) == 0)
            mcp_dispatch(call);
    } else if (!call->is_over && call->proceed) {
        call->proceed(call);
    }
    mcp_call_settle(call);
}

static void process_gone(struct exchange *exchange)
{
    mcp_client_end(exchange->user, exchange);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the type of stream readers */
static ssize_t read_nothing(struct exchange *exchange, char *bytes, size_t size)
{
    (void) exchange;
    (void) bytes;
    (void) size;
    return STREAM_LATER;
}

static int check_process(const char *id, const struct exchange *exchange, error *err)
{
    size_t length = strlen(id);
    for (const char *at = id; *at; at++)
        if (!isxdigit((unsigned char) *at))
            length = 0;
    if (length != MCP_CLIENT_ID_SIZE - 4)
        return fail(err, ERR_BAD_REQUEST, "Glovebox-Process is 32 hex digits");
    if (mcp_client_find(CLIENT_PROCESS, id, exchange))
        return fail(err, ERR_CONFLICT, "this Glovebox-Process has a stream already");
    return 0;
}

/* Only processes have a stream: nothing is sent to clients that did not ask. */
static void get_process(struct exchange *exchange)
{
    const char *id = exchange_header(exchange, "Glovebox-Process");
    struct mcp_client *client = NULL;
    error err;
    int result = id ? check_process(id, exchange, &err)
                    : fail(&err, ERR_METHOD,
                           "there is no stream of notifications here; send messages by POST");
    if (result == 0) {
        client = mcp_client_new(CLIENT_PROCESS, id, exchange);
        if (!client)
            (void) fail(&err, ERR_BUSY, "too many clients at once; try again");
    }
    if (!client) {
        if (err.code == ERR_METHOD)
            exchange_add_header(exchange, MHD_HTTP_HEADER_ALLOW, "POST, DELETE");
        exchange_fail(exchange, &err);
        return;
    }
    const char *files = exchange_header(exchange, "Glovebox-Files");
    client->files = !files                             ? FILES_NONE
                    : strcmp(files, "read-write") == 0 ? FILES_WRITE
                                                       : FILES_READ;
    exchange->user = client;
    exchange->closed = process_gone;
    exchange_rest(exchange);
    exchange_stream(exchange, read_nothing);
}

/* Ends a handshake, and its own session. */
static void delete_client(struct exchange *exchange)
{
    const char *id = exchange_header(exchange, "Mcp-Session-Id");
    struct mcp_client *client = id ? mcp_client_find(CLIENT_HANDSHAKE, id, exchange) : NULL;
    error err;
    if (!client) {
        (void) fail(&err, ERR_NOT_FOUND, "this Mcp-Session-Id is not known, or no longer");
        exchange_fail(exchange, &err);
        return;
    }
    mcp_client_end(client, exchange);
    exchange_answer_nothing(exchange, MHD_HTTP_NO_CONTENT);
}

/* `path` NULL: the URL had none. */
static bool is_path_of(const char *audience, const char *path)
{
    const char *host = strstr(audience, "://");
    const char *own = host ? strchr(host + 3, '/') : NULL;
    return !path || strcmp(path, own ? own + 1 : "") == 0;
}

/* The authorization servers of this service (RFC 9728). */
static void get_metadata(struct exchange *exchange)
{
    const char *issuer, *audience;
    char scopes[160];
    error err;
    if (!service_takes_tokens(exchange->service, &issuer, &audience) ||
        !is_path_of(audience, exchange->parameters[0])) {
        (void) fail(&err, ERR_NOT_FOUND, "tokens are not accepted here, only API keys");
        exchange_fail(exchange, &err);
        return;
    }
    service_token_scopes_print(RIGHT_ANY, scopes, sizeof scopes);
    struct bytes json = json_begin('{');
    json_string_field(&json, "resource", audience);
    json_open_field(&json, "authorization_servers", '[');
    json_string(&json, issuer);
    json_close(&json, ']');
    json_open_field(&json, "scopes_supported", '[');
    for (char *rest = scopes, *word; (word = strsep(&rest, " "));)
        json_string(&json, word);
    json_close(&json, ']');
    json_open_field(&json, "bearer_methods_supported", '[');
    json_string(&json, "header");
    json_close(&json, ']');
    json_string_field(&json, "resource_name", "glovebox");
    exchange_end_json(exchange, &json, "}");
}

static const struct route rows[] = {
    /* clang-format off */
    { "POST",   "/mcp", BODY_JSON, post_message,  "One message of the Model Context Protocol", .streams = true, .is_repeatable = true, .operation = "postMcpMessage" },
    { "GET",    "/mcp", BODY_NONE, get_process,   "Held open by a stdio process; what it has begun ends with it", .mime = "text/event-stream", .operation = "holdMcpProcess" },
    { "GET",    "/mcp/python/sse", BODY_NONE, mcp_python_get, "The tool python for model servers, over the older transport: what is answered to messages", RIGHT_SESSIONS, .mime = "text/event-stream", .operation = "followMcpPython" },
    { "POST",   "/mcp/python/messages", BODY_JSON, mcp_python_post, "One message of that transport", RIGHT_SESSIONS, .is_repeatable = true, .operation = "postMcpPythonMessage",
      .query = QUERY({ "session_id", IN_QUERY, "string", "as the stream has named it", .is_required = true }) },
    { "GET",    "/.well-known/oauth-protected-resource", BODY_NONE, get_metadata, "Who gives access tokens for this service", RIGHT_NONE, .operation = "getProtectedResource", .gives = "ProtectedResource" },
    { "GET",    "/.well-known/oauth-protected-resource/{path}", BODY_NONE, get_metadata, "The same, for the path of the service", RIGHT_NONE, .operation = "getProtectedResourceOfPath", .gives = "ProtectedResource" },
    { "DELETE", "/mcp", BODY_NONE, delete_client, "Ends what a handshake began", .operation = "endMcpClient" },
    /* clang-format on */
};

static const struct route_table routes = { "mcp", rows, COUNT_OF(rows), RIGHT_ANY,
                                           .text = "The Model Context Protocol" };
const struct route_table *const mcp_tables[] = { &routes, NULL };
