/* headers.c - headers in which a request without a handshake repeats parts of its body, so that a
 * proxy can route it without reading the body: both must be equal.
 *
 * `glovebox mcp` sends no such headers: there is no proxy between it and us. */
#include "doors/mcp/mcp.h"

#include <microhttpd.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { VALUE_MAX = 4096 };

static const char prefix[] = "=?base64?";

struct header_look {
    const char *name, *value;
    unsigned count;
};

static void look(void *context, const char *name, const char *value)
{
    struct header_look *found = context;
    if (strcasecmp(name, found->name) != 0)
        return;
    found->count++;
    found->value = value ? value : "";
}

/* A value that HTTP cannot carry is sent as =?base64?…?=. Gives  the decoded value; NULL: it is
 * invalid. */
static const char *decode(const char *value, char room[VALUE_MAX])
{
    size_t size, begin = sizeof prefix - 1, length = strlen(value);
    while (length > 0 && (value[length - 1] == ' ' || value[length - 1] == '\t'))
        length--; /* blanks around a value do not count (RFC 9110, 5.5) */
    if (length >= VALUE_MAX)
        return NULL;
    if (length < begin + 2 || strncmp(value, prefix, begin) != 0 ||
        strncmp(value + length - 2, "?=", 2) != 0) {
        (void) snprintf(room, VALUE_MAX, "%.*s", (int) length, value);
        return room;
    }
    if (sodium_base642bin((unsigned char *) room, VALUE_MAX - 1, value + begin, length - begin - 2,
                          NULL, &size, NULL, sodium_base64_VARIANT_ORIGINAL) < 0 ||
        memchr(room, 0, size))
        return NULL;
    room[size] = '\0';
    return room;
}

static int mismatch(struct mcp_call *call, const char *message)
{
    call->status = MHD_HTTP_BAD_REQUEST;
    mcp_fail(call, MCP_HEADER_MISMATCH, "Header mismatch: %s", message);
    return -1;
}

/* `expected` NULL: the body has no such value. */
static int check(struct mcp_call *call, const char *name, const char *expected)
{
    char message[320];
    char room[VALUE_MAX];
    struct header_look found = { name, NULL, 0 };
    exchange_each_header(call->exchange, look, &found);
    if (found.count == 0 && (!expected || call->process))
        return 0;
    const char *value = found.count == 1 ? decode(found.value, room) : NULL;
    if (found.count == 0)
        (void) snprintf(message, sizeof message, "%s is missing", name);
    else if (found.count > 1)
        (void) snprintf(message, sizeof message, "%s stands %u times", name, found.count);
    else if (!value)
        (void) snprintf(message, sizeof message, "%s is not base64", name);
    else if (!expected)
        (void) snprintf(message, sizeof message, "%s has no value in the body", name);
    else if (strcmp(value, expected) != 0)
        (void) snprintf(message, sizeof message,
                        "%s header value '%.80s' does not match body value '%.80s'", name, value,
                        expected);
    else
        return 0;
    return mismatch(call, message);
}

int mcp_header_check_version(struct mcp_call *call, const char *version)
{
    return exchange_header(call->exchange, "MCP-Protocol-Version")
               ? check(call, "MCP-Protocol-Version", version)
               : 0;
}

int mcp_headers_check(struct mcp_call *call)
{
    if (call->era != ERA_STATELESS)
        return 0;
    const struct mcp_method *method = mcp_method_find(call);
    const char *member = method ? method->named : NULL;
    if (check(call, "MCP-Protocol-Version", call->version) < 0 ||
        check(call, "Mcp-Method", call->method_name) < 0)
        return -1;
    return member ? check(call, "Mcp-Name", member_text(call->params, member)) : 0;
}

/* Arguments with x-mcp-header in their schema. Numbers and booleans are written as in JSON. */
static int check_argument(struct mcp_call *call, const char *argument, const char *header)
{
    char name[96];
    struct json_object *value = json_member(call->arguments, argument);
    (void) snprintf(name, sizeof name, "Mcp-Param-%.80s", header);
    return check(call, name, value ? json_object_get_string(value) : NULL);
}

/* Arguments that a proxy may use for routing. */
const char *mcp_header_of(const char *argument)
{
    return strcmp(argument, "session_id") == 0 ? "Session" : NULL;
}

static int check_schema(struct mcp_call *call, struct json_object *schema)
{
    struct json_object *properties = json_member(schema, "properties");
    if (!properties)
        return 0;
    json_object_object_foreach(properties, argument, property)
    {
        const char *header = member_text(property, "x-mcp-header");
        if (header && check_argument(call, argument, header) < 0)
            return -1;
    }
    return 0;
}

/* For a tool whose schema is JSON. */
static int check_by_schema(struct mcp_call *call)
{
    auto_json schema = NULL;
    error err;
    if (!strstr(call->tool->schema, "x-mcp-header") ||
        json_read(call->tool->schema, strlen(call->tool->schema), &schema, &err) < 0)
        return 0;
    return check_schema(call, schema);
}

int mcp_header_check_arguments(struct mcp_call *call)
{
    if (call->era != ERA_STATELESS)
        return 0;
    if (call->tool->schema)
        return check_by_schema(call);
    for (const struct property *row = call->tool->arguments; row && row->name; row++) {
        const char *header = mcp_header_of(row->name);
        if (header && check_argument(call, row->name, header) < 0)
            return -1;
    }
    return 0;
}
