/* member.h - the member of a value; NULL: it is null, missing, or the value is no object. */
#pragma once

#include <json-c/json.h>

static inline struct json_object *json_member(struct json_object *object, const char *name)
{
    struct json_object *value = NULL;
    (void) json_object_object_get_ex(object, name, &value);
    return value;
}
