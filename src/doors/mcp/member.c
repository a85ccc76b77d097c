/* member.c - texts of what a client has sent, or NULL. */
#include "doors/mcp/mcp.h"

#include <string.h>

const char *mcp_text(struct json_object *object, const char *name)
{
    struct json_object *value = json_member(object, name);
    if (!json_object_is_type(value, json_type_string))
        return NULL;
    const char *text = json_object_get_string(value);
    return strlen(text) == (size_t) json_object_get_string_len(value) ? text : NULL;
}
